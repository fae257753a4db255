package redis_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/crash"
	"github.com/lockfx/lockfx/redisstore"
)

func TestMain(m *testing.M) {
	crash.Child(openPlace)
	goleak.VerifyTestMain(m)
}

// place says where a store is, so that another process can open it.
type place struct {
	Addrs   []string
	Cluster bool
	Prefix  string
	User    string
}

func (p place) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func openPlace(_ context.Context, text string) (lockfx.Store, error) {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: p.Addrs, IsClusterMode: p.Cluster, Username: p.User, Password: password})
	return redisstore.New(client, redisstore.WithPrefix(p.Prefix))
}
