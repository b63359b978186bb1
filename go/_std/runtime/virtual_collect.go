// Virtual time: garbage collection at the same points in every run.
//
// The time of Go's collections depends on real time: on the speed of the threads
// and on the clock. A deterministic program therefore collects when it is idle
// and the coordinator requests it. A program that is busy for so long that its
// garbage could exhaust the memory cannot wait for a request: it collects between
// two goroutine turns, whose number is the same in every run.

package runtime

import "unsafe"

// vtCollectorG is the goroutine that collects, while it is parked.
var vtCollectorG guintptr

func vtCollector() {
	for {
		gopark(vtCollectorParked, nil, waitReasonForceGCIdle, traceBlockSystemGoroutine, 1)
		GC()
		vt.heap.Store(gcController.heapLive.Load())
		vt.flags.And(^uint32(vtCollectNow))
	}
}

// vtCollectorParked runs after the goroutine has stopped, so that the poller
// never readies a running goroutine.
func vtCollectorParked(gp *g, _ unsafe.Pointer) bool {
	vtCollectorG.set(gp)
	return true
}

// vtTurns counts the turns of all goroutines: how often one was scheduled.
var vtTurns uint64

// vtTurn counts a turn before it starts, and regularly checks the amount of
// garbage. The amount differs by some kilobytes between runs, less than what
// accumulates between two checks.
func vtTurn() {
	const interval = 1 << 10
	if !vtSeeded {
		return
	}
	if vtTurns++; vtTurns%interval != 0 || vt.flood.Load() == 0 {
		return
	}
	if gcController.heapLive.Load() < 2*vt.heap.Load()+vt.flood.Load() {
		return
	}
	if gp := vtCollectorG.ptr(); gp != nil {
		vtCollectorG = 0
		var list gList
		list.push(gp)
		injectglist(&list)
	}
}

// vtMayCollect returns whether a trigger may start a collection. Go's trigger
// after two minutes without a collection depends on real time.
func vtMayCollect(kind gcTriggerKind) bool {
	return vt == nil || kind == gcTriggerCycle || kind == gcTriggerHeap && !vtSeeded
}
