// Package storetest is the conformance kit of [lockfx.Store]: what every store
// promises, one promise a case. The whole test of a store is:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func() (*storetest.Harness, error) {
//			store, err := mystore.New(client, mystore.WithPrefix(randomPrefix()))
//			return &storetest.Harness{Store: store, TTL: time.Second}, err
//		})
//	}
//
// A case that needs more than a store, such as a restart of the server, runs if the
// [Harness] offers it. An optional capability, such as [lockfx.Watcher], is checked
// if the store has it. A promise that a store cannot keep is waived with a reason;
// its case still runs, and fails if the store keeps the promise after all.
//
// [Check] runs the same cases without package testing's control, for programs and
// for tests of the kit itself.
package storetest
