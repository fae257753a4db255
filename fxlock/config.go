package fxlock

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Config is what a program may load from a file or its environment. A zero field
// leaves the default; see the options of the same names for the rules.
type Config struct {
	Key             string        `mapstructure:"key"`
	TTL             time.Duration `mapstructure:"ttl"`
	Heartbeat       time.Duration `mapstructure:"heartbeat"`
	CallTimeout     time.Duration `mapstructure:"call_timeout"`
	Wait            time.Duration `mapstructure:"wait"`
	MinHold         time.Duration `mapstructure:"min_hold"`
	MaxHold         time.Duration `mapstructure:"max_hold"`
	ReleaseTimeout  time.Duration `mapstructure:"release_timeout"`
	TeardownTimeout time.Duration `mapstructure:"teardown_timeout"`
	RenewRetry      bool          `mapstructure:"renew_retry"`
	TokenName       string        `mapstructure:"token_name"`
	HolderName      string        `mapstructure:"holder_name"`
	Label           string        `mapstructure:"label"`
	Named           bool          `mapstructure:"named"`
	Private         bool          `mapstructure:"private"`
}

// WithConfig applies each field of c that is not zero as the option of its name
// does.
func WithConfig(c Config) Option {
	return option{"fxlock.WithConfig(" + c.String() + ")", func(s *settings) {
		for _, o := range c.options() {
			o.applyLock(s)
		}
	}}
}

// String returns c as it is written, without the fields that are zero.
func (c Config) String() string {
	var fields []string
	v := reflect.ValueOf(c)
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.IsZero():
		case f.Kind() == reflect.String:
			fields = append(fields, fmt.Sprintf("%s: %q", v.Type().Field(i).Name, f))
		default:
			fields = append(fields, fmt.Sprintf("%s: %v", v.Type().Field(i).Name, f))
		}
	}
	return "fxlock.Config{" + strings.Join(fields, ", ") + "}"
}

func (c Config) options() []Option {
	var opts []Option
	add := func(set bool, o func() Option) {
		if set {
			opts = append(opts, o())
		}
	}
	add(c.Key != "", func() Option { return WithKey(c.Key) })
	add(c.TTL != 0, func() Option { return WithTTL(c.TTL) })
	add(c.Heartbeat != 0, func() Option { return WithHeartbeat(c.Heartbeat) })
	add(c.CallTimeout != 0, func() Option { return WithCallTimeout(c.CallTimeout) })
	add(c.Wait != 0, func() Option { return Wait(c.Wait) })
	add(c.MinHold != 0, func() Option { return MinHold(c.MinHold) })
	add(c.MaxHold != 0, func() Option { return MaxHold(c.MaxHold) })
	add(c.ReleaseTimeout != 0, func() Option { return WithReleaseTimeout(c.ReleaseTimeout) })
	add(c.TeardownTimeout != 0, func() Option { return WithTeardownTimeout(c.TeardownTimeout) })
	add(c.RenewRetry, WithRenewRetry)
	add(c.TokenName != "", func() Option { return WithTokenName(c.TokenName) })
	add(c.HolderName != "", func() Option { return WithHolderName(c.HolderName) })
	add(c.Label != "", func() Option { return WithLabel(c.Label) })
	add(c.Named, Named)
	add(c.Private, Private)
	return opts
}
