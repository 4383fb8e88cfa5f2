package server

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dropProgramPages removes the pages of the program's file from the memory of the process. Most of them were used by the start only. Pages
// that are used again come back from the page cache of the system.
func dropProgramPages() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	for _, m := range unwrittenMappings(f, program) {
		// An error leaves the pages in memory.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED)
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// unwrittenMappings returns the mappings of a file in smaps (proc_pid_smaps(5)) that cannot be written and have no pages of their own. A
// page of its own, such as one with relocations, would be lost.
func unwrittenMappings(smaps io.Reader, file string) (found []mapping) {
	lines := bufio.NewScanner(smaps)
	var last *mapping // the current mapping, if it is one of the file without the right to write
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		if name, isField := strings.CutSuffix(words[0], ":"); isField {
			if last != nil && name == "Anonymous" && words[1] == "0" {
				found = append(found, *last)
			}
			continue
		}
		last = nil
		from, to, _ := strings.Cut(words[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 == nil && err2 == nil && len(words) == 6 && words[5] == file && strings.HasPrefix(words[1], "r-") {
			last = &mapping{uintptr(start), uintptr(end)}
		}
	}
	return found
}
