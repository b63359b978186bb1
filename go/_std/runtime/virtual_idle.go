// Virtual time: how idleness is detected and reported.
//
// An M that finds nothing to run releases its P and becomes the poller, the only
// thread that waits for the network (findRunnable; sched.lastpoll ensures that
// there is only one). The poller can therefore detect idleness: if every P is
// idle, epoll has no event, and no other thread is carrying goroutines from epoll
// to a P, nothing happens until data arrives or the clock advances. An M that
// releases the last P while another one polls wakes the poller (vtLastIdle),
// which checks again. So every idle moment is reported.

package runtime

import (
	"internal/runtime/atomic"
	"unsafe"
)

// vtLanding counts the threads that may be carrying goroutines from epoll to a P.
var vtLanding atomic.Int32

// vtPoll replaces the poller's netpoll. Before it blocks, it reports idleness;
// instead of blocking, it may collect garbage or advance the clock. It runs
// without a P.
//
//go:nowritebarrierrec
func vtPoll(delay int64, ps []*p) (gList, int32) {
	if vt == nil {
		return netpoll(delay)
	}
	const noWait, block = 0, -1
	probe := vt.probe.Load() // before the checks: the report must not answer a later probe
	othersLanding := vtLanding.Add(1) > 1
	if delay == 0 {
		return netpoll(noWait) // a timer is due
	}
	if sched.npidle.Load() != gomaxprocs {
		return netpoll(block) // the thread that releases the last P wakes us (vtLastIdle)
	}
	if othersLanding || sched.nmspinning.Load() != 0 {
		return netpoll(noWait)
	}
	vtAwaitArrival()
	var atOnce [2]int64
	if vtPollFile(epfd, vtReadable, &atOnce) {
		return netpoll(block) // returns at once, and resets the eventfd, which a non-blocking poll does not
	}
	next := vtNextTimer(ps)
	if next <= vt.now.Load() {
		return netpoll(noWait)
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
		return gList{}, 0 // the caller runs the timer
	}
	vt.next.Store(next)
	vt.live.Store(gcController.heapLive.Load())
	vt.seen.Store(probe)
	vt.idles.Add(1)
	one := uint64(1)
	write1(uintptr(vtIdleFd), noescape(unsafe.Pointer(&one)), 8)
	return netpoll(block)
}

// vtLanded records that the goroutines from epoll are on a P or in a run queue.
//
//go:nowritebarrierrec
func vtLanded() {
	if vt != nil {
		vtLanding.Add(-1)
	}
}

// vtLastIdle wakes the poller when the last P has become idle, so that it reports
// idleness. If no thread polls, the M that releases this P is going to.
//
//go:nowritebarrierrec
func vtLastIdle() {
	if vt != nil && sched.npidle.Load() == gomaxprocs && sched.lastpoll.Load() == 0 {
		netpollBreak()
	}
}

// vtPollerFd returns the eventfd that wakes the poller: the coordinator's, in
// place of the one that Go has created.
func vtPollerFd(own int32, errno uintptr) (int32, uintptr) {
	if vt == nil {
		return own, errno
	}
	if errno == 0 {
		closefd(own)
	}
	return vtWakeFd, 0
}

// vtStart runs as soon as goroutines can be started. It initializes the poller,
// also in programs that use neither network nor timers.
func vtStart() {
	if vt != nil {
		netpollGenericInit()
		go vtCollector()
	}
}
