// Virtual time: what other packages tell and ask.

package runtime

import (
	"internal/runtime/syscall/linux"
	"unsafe"
)

// vtTouched counts something that the other side of a connection will notice,
// before it happens.
//
//go:linkname vtTouched internal/poll.vtTouched
func vtTouched() {
	if vt != nil {
		vt.wrote.Add(1)
	}
}

// vtConnecting counts the connections that the other side has to expect.
//
//go:linkname vtConnecting internal/poll.vtConnecting
func vtConnecting() {
	if vt != nil {
		vt.begun.Add(1)
	}
}

// vtMoved counts the bytes that crossed a connection: when both sides have
// counted the same number, nothing is on its way.
//
//go:linkname vtMoved internal/poll.vtMoved
func vtMoved(sent, got int) {
	if vt != nil {
		vt.sent.Add(int64(sent))
		vt.got.Add(int64(got))
	}
}

// vtConnected waits, in real time and at most five seconds, until a connection
// is made or refused, and reports whether it was worth waiting: only a
// deterministic program may not go on in the meantime.
//
//go:linkname vtConnected internal/poll.vtConnected
func vtConnected(fd int32) bool {
	if !vtSeeded {
		return false
	}
	const writable = 4
	watched := vtPollFd{fd: fd, events: writable}
	patience := [2]int64{5, 0}
	ready, _, _ := linux.Syscall6(vtPpoll, uintptr(noescape(unsafe.Pointer(&watched))), 1,
		uintptr(noescape(unsafe.Pointer(&patience))), 0, 0, 0)
	return ready == 1
}
