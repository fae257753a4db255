package runscope

import (
	"errors"
	"slices"
)

// reach follows the parameters of the body to everything that they need.
type reach struct {
	*compiler
	plan   *Plan
	leafAt map[Key]int
	used   map[*ctor]bool
}

// plan works out what the body reaches. It relies on a Spec without faults.
func (c *compiler) plan() (*Plan, error) {
	p := &Plan{run: slices.Clone(c.spec.Run), wants: make([]bool, len(c.spec.Run)), bound: map[Key]bool{}}
	r := &reach{compiler: c, plan: p, leafAt: map[Key]int{}, used: map[*ctor]bool{}}
	for _, l := range params(c.body) {
		r.need(l, "body")
	}
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	// Provided in the order of the Spec, so that runs are alike.
	for _, k := range c.ctors {
		if r.used[k] {
			p.ctors = append(p.ctors, k)
		}
	}
	p.lay(c.body)
	return p, nil
}

// need notes that asker has the parameter l.
func (r *reach) need(l Leaf, asker string) {
	if l.Group != "" {
		r.plan.soft = r.plan.soft || l.Soft
		if !l.Soft {
			for _, k := range r.makers[l.Key] {
				r.use(k)
			}
		}
		r.leaf(l)
		return
	}
	if i, ok := r.runAt[l.Key]; ok {
		r.want(i)
		return
	}
	if makers := r.makers[l.Key]; makers != nil {
		r.use(makers[0])
		return
	}
	switch {
	case !l.Type.Implements(errorType):
		r.leaf(l)
	case !l.Optional:
		r.fault("%s: %v is an error, which no container holds", asker, l.Key)
	}
}

// use notes that k is built in a run. What it needs is then needed, even where k
// itself was only asked for as optional: an absent dependency must not turn it
// into nil without a word.
func (r *reach) use(k *ctor) {
	if r.used[k] {
		return
	}
	r.used[k] = true
	for _, key := range k.gives {
		if key.Group == "" {
			r.plan.bound[key] = true
		}
	}
	for _, l := range k.needs {
		r.need(l, "constructor "+k.Label)
	}
}

// want notes that run value i is asked for. The by-hand resolver can ask for
// anything, so it brings everything.
func (r *reach) want(i int) {
	if r.plan.wants[i] {
		return
	}
	key := r.spec.Run[i]
	r.plan.wants[i] = true
	r.plan.bound[key] = true
	if key != (Key{Type: r.spec.Hand}) {
		return
	}
	r.plan.hand = true
	for j := range r.spec.Run {
		r.want(j)
	}
	for _, k := range r.ctors {
		r.use(k)
	}
	for _, shared := range r.spec.Shared {
		r.need(Leaf{Key: shared}, "share")
	}
}

// leaf notes that l comes from the application. Of two askers the stricter wins.
func (r *reach) leaf(l Leaf) {
	i, known := r.leafAt[l.Key]
	if !known {
		r.leafAt[l.Key] = len(r.plan.leaves)
		r.plan.leaves = append(r.plan.leaves, l)
		r.plan.bound[l.Key] = true
		return
	}
	have := &r.plan.leaves[i]
	have.Optional = have.Optional && l.Optional
	have.Soft = have.Soft && l.Soft
}
