// Virtual time: when is the program idle, and what then.
//
// An M that finds nothing to run gives up its P and becomes the poller, the one
// thread that waits for the network (findRunnable; sched.lastpoll sees to it
// that there is only one). So the poller is where a program is idle: if every P
// is idle then, no event waits in epoll and no other thread is on its way from
// there to a P, nothing will happen until somebody writes to us or the clock
// moves. An M that gives up the last P while another one polls wakes that one
// (vtLastIdle), which then finds the same: no idle moment passes unreported.

package runtime

import (
	"internal/runtime/atomic"
	"unsafe"
)

// vtLanding counts the threads that may carry goroutines from epoll to a P.
var vtLanding atomic.Int32

// vtPoll is the poller's netpoll. It reports idleness before it blocks, or does
// something better than blocking. It runs without a P.
//
//go:nowritebarrierrec
func vtPoll(delay int64, ps []*p) (gList, int32) {
	if vt == nil {
		return netpoll(delay)
	}
	const look, block = 0, -1
	probe := vt.probe.Load() // before looking: what comes later is not covered by our answer
	travelling := vtLanding.Add(1) > 1
	if delay == 0 {
		return netpoll(look) // a timer is due
	}
	if sched.npidle.Load() != gomaxprocs {
		return netpoll(block) // whoever has a P comes by later
	}
	if travelling || sched.nmspinning.Load() != 0 {
		return netpoll(look)
	}
	vtAwaitArrival()
	var atOnce [2]int64
	if vtPollFile(epfd, vtReadable, &atOnce) {
		return netpoll(block) // returns at once, and empties the eventfd, which looking does not
	}
	next := vtNextTimer(ps)
	if next <= vt.now.Load() {
		return netpoll(look)
	}
	if vt.flags.Load()&vtCollectNow != 0 {
		if gp := vtCollectorG.ptr(); gp != nil {
			vtCollectorG = 0
			var list gList
			list.push(gp)
			return list, 0
		}
	}
	if next < vt.limit.Load() && vt.wrote.Load() == vt.granted.Load() {
		vt.now.Store(next)
		vt.jumps.Add(1)
		return gList{}, 0 // and on to the timer
	}
	vt.next.Store(next)
	vt.live.Store(gcController.heapLive.Load())
	vt.seen.Store(probe)
	vt.idles.Add(1)
	one := uint64(1)
	write1(uintptr(vtIdleFd), noescape(unsafe.Pointer(&one)), 8)
	return netpoll(block)
}

// vtLanded says that what the poller brought is on a P or in the run queue.
//
//go:nowritebarrierrec
func vtLanded() {
	if vt != nil {
		vtLanding.Add(-1)
	}
}

// vtLastIdle wakes the poller when the last P became idle, so that it reports.
// If nobody polls, the M that is about to let go of this P will.
//
//go:nowritebarrierrec
func vtLastIdle() {
	if vt != nil && sched.npidle.Load() == gomaxprocs && sched.lastpoll.Load() == 0 {
		netpollBreak()
	}
}

// vtPollerFd returns the eventfd that wakes the poller: the coordinator's
// instead of the one just made.
func vtPollerFd(own int32, errno uintptr) (int32, uintptr) {
	if vt == nil {
		return own, errno
	}
	if errno == 0 {
		closefd(own)
	}
	return vtWakeFd, 0
}

// vtStart runs when goroutines can: from now on there is a poller, even in a
// program that never uses network or timers.
func vtStart() {
	if vt != nil {
		netpollGenericInit()
		go vtCollector()
	}
}
