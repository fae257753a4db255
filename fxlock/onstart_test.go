package fxlock_test

// Migrated is the marker of a start job.
type Migrated struct{}
