// Package etcdserver runs etcd in the shapes that the tests need: one member, or a
// cluster. Each member is a process of its own that can be killed and paused, and
// started again on what it kept. The process is the test program, started again:
//
//	func TestMain(m *testing.M) {
//		etcdserver.Member() // returns at once, except in the process of a member
//		goleak.VerifyTestMain(m)
//	}
package etcdserver
