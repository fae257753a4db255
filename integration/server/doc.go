// Package server runs the processes of engines under test: each in a temporary
// folder of its own, on a random port of the loopback interface, stopped by its
// process id. A server dies with the process that started it, where the system
// offers that.
//
// Nothing here is skipped when a program is missing: [Find] is an error that says
// what to install.
package server
