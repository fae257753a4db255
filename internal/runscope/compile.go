package runscope

import (
	"errors"
	"fmt"
	"reflect"
)

// Compile checks s and works out what it needs. The error joins all faults that
// were found. Constructors are built for it, but never called.
func Compile(s Spec) (*Plan, error) {
	c := &compiler{spec: s, runAt: map[Key]int{}, makers: map[Key][]*ctor{}, owners: map[Key]string{}}
	c.checkBody()
	c.checkRun()
	c.checkCtors()
	c.checkShared()
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	plan, err := c.plan()
	if err != nil {
		return nil, err
	}
	if err := plan.dryRun(c.ctors); err != nil {
		return nil, err
	}
	return plan, nil
}

// compiler collects what is known about a Spec, and its faults.
type compiler struct {
	spec   Spec
	body   []reflect.Type
	runAt  map[Key]int     // positions in spec.Run
	ctors  []*ctor         // those without a fault of their own
	makers map[Key][]*ctor // who gives a key; only groups have more than one
	owners map[Key]string  // who binds a single value, for messages
	faults []error
}

func (c *compiler) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

func (c *compiler) checkBody() {
	if c.spec.Body == nil || c.spec.Body.Kind() != reflect.Func {
		c.fault("body: must be a function, not %v", c.spec.Body)
		return
	}
	c.body = positional(c.spec.Body)
	if err := judgeParams(c.body); err != nil {
		c.fault("body %v: %w", c.spec.Body, err)
	}
}

func (c *compiler) checkRun() {
	for i, k := range c.spec.Run {
		switch {
		case !c.checkKey("run value", k):
		case k.Group != "":
			c.fault("run value %v: a run binds no groups", k)
		case c.claim(k, "the run"):
			c.runAt[k] = i
		}
	}
	if hand := c.spec.Hand; hand != nil {
		if _, ok := c.runAt[Key{Type: hand}]; !ok {
			c.fault("by-hand resolver %v: must be one of the run's values", hand)
		}
	}
}

func (c *compiler) checkCtors() {
	for i, spec := range c.spec.Ctors {
		k, err := inspect(i, spec)
		if err != nil {
			c.faults = append(c.faults, err)
			continue
		}
		c.ctors = append(c.ctors, k)
		for _, key := range k.gives {
			if key.Group != "" || c.claim(key, "constructor "+k.Label) {
				c.makers[key] = append(c.makers[key], k)
			}
		}
	}
}

func (c *compiler) checkShared() {
	for _, k := range c.spec.Shared {
		c.checkKey("shared value", k)
	}
}

func (c *compiler) checkKey(what string, k Key) bool {
	switch {
	case k.Type == nil:
		c.fault("%s: has no type", what)
	case k.Name != "" && k.Group != "":
		c.fault("%s %v: has both the name %q and the group %q", what, k.Type, k.Name, k.Group)
	default:
		if err := judgeKey(k); err != nil {
			c.fault("%s %v: %w", what, k, err)
			return false
		}
		return true
	}
	return false
}

// claim notes that owner binds the single value k, which nobody else may.
func (c *compiler) claim(k Key, owner string) bool {
	if other, taken := c.owners[k]; taken {
		c.fault("%s: %v is already bound by %s", owner, k, other)
		return false
	}
	c.owners[k] = owner
	return true
}
