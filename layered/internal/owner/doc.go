// Package owner says which users share a lock: the modes of its file and of the directory
// around it do.
//
//	directory 0700, and what others can't write to   its owner, and root
//	directory g+w, not sticky, not o+w               the users of its group
//	file g+w, not o+w, in any directory              the users of its group
//
// What is made in a directory is made for those who share it, whatever the umask: with
// g+w and the group of the directory where that shares, and for the directory's owner
// where root made it. So one run by root locks nobody out.
//
// What belongs to anybody else is refused: who does not share a lock could hold it for
// ever, or take its file away under the holder.
package owner
