package etcdstore

import (
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfx/lockfx"
)

func fresh(id clientv3.LeaseID, seconds int64) lease {
	return lease{id: id, seconds: seconds, since: time.Now()}
}

// filled returns a pool of 2 that is used for leases of 10 s.
func filled(ids ...clientv3.LeaseID) *pool {
	p := &pool{ahead: 2}
	p.take(10)
	for _, id := range ids {
		p.put(fresh(id, 10))
	}
	return p
}

func TestPoolGivesEachLeaseOnce(t *testing.T) {
	p := filled(1, 2)
	a, okA, _ := p.take(10)
	b, okB, _ := p.take(10)
	if !okA || !okB || a.id == b.id {
		t.Errorf("%v %v, %v %v; want two leases", a, okA, b, okB)
	}
	if l, ok, _ := p.take(10); ok {
		t.Errorf("a third lease: %v", l)
	}
}

func TestPoolRefusesWhatItCantUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spoilt := fresh(3, 10)
		spoilt.spoilt = true
		old := fresh(4, 10)
		time.Sleep(9 * time.Second)
		for name, l := range map[string]lease{"spoilt": spoilt, "old": old, "of another ttl": fresh(5, 20)} {
			if filled(1).put(l) {
				t.Errorf("the pool took a lease that is %s", name)
			}
		}
		if filled(1, 2).put(fresh(6, 10)) {
			t.Error("the pool took more leases than its size")
		}
		closed := filled(1, 2)
		if rest := closed.close(); len(rest) != 2 || closed.put(fresh(6, 10)) || closed.short(10) {
			t.Errorf("closed with %d leases left, want 2, and takes more", len(rest))
		}
		alone := &pool{}
		alone.take(10)
		if alone.short(10) || !alone.put(fresh(6, 10)) || alone.put(fresh(7, 10)) {
			t.Error("without leases ahead, one that came back is kept, and no other")
		}
	})
}

func TestPoolLeavesOldLeasesToTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := filled(1)
		time.Sleep(5 * time.Second)
		p.put(fresh(2, 10))
		time.Sleep(4 * time.Second)
		if l, ok, _ := p.take(10); !ok || l.id != 2 {
			t.Errorf("%v %v, want lease 2", l, ok)
		}
		if l, ok, _ := p.take(10); ok {
			t.Errorf("%v, which is too old", l)
		}
	})
}

func TestPoolFollowsTheTTL(t *testing.T) {
	p := filled(1, 2)
	_, ok, unfit := p.take(20)
	if ok || len(unfit) != 2 {
		t.Errorf("%v, %d unfit leases; want none to use and 2 to revoke", ok, len(unfit))
	}
	if p.short(10) || !p.short(20) {
		t.Error("the pool is filled with leases of the ttl before")
	}
}

func TestHoldsForgetWhatWasAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h holds
		renewed := hold{"renewed", 1}
		for token := range lockfx.Token(10_000) {
			h.put(renewed, fresh(1, 10))
			h.put(hold{"abandoned", token}, fresh(2, 10))
			time.Sleep(time.Second)
		}
		if n := len(h.of); n > 200 {
			t.Errorf("%d leases are known, most of which ended long ago", n)
		}
		if _, ok := h.get(renewed); !ok {
			t.Error("a lease that lives was forgotten")
		}
	})
}
