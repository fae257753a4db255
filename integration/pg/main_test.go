package pg_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/integration/crash"
	"github.com/lockfx/lockfx/pgstore"
)

func TestMain(m *testing.M) {
	crash.Child(openPlace)
	goleak.VerifyTestMain(m)
}

// place says where a store is, so that another process can open it.
type place struct {
	URL   string
	Table string
}

func (p place) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func openPlace(ctx context.Context, text string) (lockfx.Store, error) {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, p.URL)
	if err != nil {
		return nil, err
	}
	return pgstore.New(pool, pgstore.WithTable(p.Table))
}
