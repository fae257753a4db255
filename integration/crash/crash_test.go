package crash_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockfx/lockfx"
	"github.com/lockfx/lockfx/fxlock"
	"github.com/lockfx/lockfx/integration/crash"
)

func TestMain(m *testing.M) {
	crash.Child(func(_ context.Context, target string) (lockfx.Store, error) {
		if target != "here" {
			return nil, errors.New("no store at " + target)
		}
		return fxlock.NewMemoryStore(), nil
	})
	goleak.VerifyTestMain(m)
}

func TestTheTokenOfTheChildIsReported(t *testing.T) {
	before := time.Now()
	token, err := crash.Acquire(t.Context(), "here", "key", time.Minute)
	if err != nil || token < lockfx.Token(before.UnixMicro()) {
		t.Errorf("token %v, error %v", token, err)
	}
}

func TestTheErrorOfTheChildIsReported(t *testing.T) {
	_, err := crash.Acquire(t.Context(), "nowhere", "key", time.Minute)
	if err == nil || !strings.Contains(err.Error(), "no store at nowhere") {
		t.Errorf("error %v, want that of the child", err)
	}
}
