package lockfx

// Version is the version of this module. CHANGELOG.md has an entry for it.
const Version = "0.1.0"
