package etcdserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/crypto/bcrypt"
)

// word marks the process of a member; what the member is told follows.
const word = "etcd-member"

// order is what the process of a member is told.
type order struct {
	Dir, Name    string
	Client, Peer string // addresses of this member
	Cluster      string // all members, as etcd writes them: name=url,...
	Heartbeat    uint   // milliseconds; an election takes ten to twenty times as long
	AuthToken    string // the kind of token, if not etcd's default
	AuthTTL      uint   // seconds that a simple token lasts, if not etcd's default
}

func (o order) args() ([]string, error) {
	text, err := json.Marshal(o)
	return []string{"-test.run=^$", word, string(text)}, err
}

// Member returns at once in an ordinary process. In the process of a member it runs
// etcd until it is asked to end, and never returns.
func Member() {
	if len(os.Args) != 4 || os.Args[2] != word {
		return
	}
	var o order
	err := json.Unmarshal([]byte(os.Args[3]), &o)
	if err == nil {
		err = o.serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (o order) serve() error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = o.Name, o.Dir, o.Cluster
	c.TickMs, c.ElectionMs = o.Heartbeat, 10*o.Heartbeat
	c.AuthToken, c.AuthTokenTTL = cmp.Or(o.AuthToken, c.AuthToken), cmp.Or(o.AuthTTL, c.AuthTokenTTL)
	c.BcryptCost = uint(bcrypt.MinCost) // passwords are checked often here
	c.LogLevel, c.LogOutputs = "error", []string{"stderr"}
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: o.Client}}
	c.ListenPeerUrls = []url.URL{{Scheme: "http", Host: o.Peer}}
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = c.ListenClientUrls, c.ListenPeerUrls
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-stop:
		return nil
	case err := <-e.Err():
		return err
	case <-e.Server.StopNotify():
		return errors.New("etcd stopped by itself")
	}
}
