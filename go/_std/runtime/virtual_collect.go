// Virtual time: garbage collection at moments that are the same in every run.
//
// When a collection happens depends on real time: on how fast the threads are,
// and on the clock. A deterministic program therefore collects when it is idle
// and told to. One that is busy for so long that its garbage would fill the
// machine cannot wait for that: it collects between two turns of its
// goroutines, whose number is the same in every run.

package runtime

import "unsafe"

// vtCollectorG is the goroutine that collects, while it waits to be asked.
var vtCollectorG guintptr

func vtCollector() {
	for {
		gopark(vtCollectorParked, nil, waitReasonForceGCIdle, traceBlockSystemGoroutine, 1)
		GC()
		vt.heap.Store(gcController.heapLive.Load())
		vt.flags.And(^uint32(vtCollectNow))
	}
}

// vtCollectorParked runs when the goroutine has stopped, so the poller never
// makes a running one ready.
func vtCollectorParked(gp *g, _ unsafe.Pointer) bool {
	vtCollectorG.set(gp)
	return true
}

// vtTurns counts the turns of all goroutines.
var vtTurns uint64

// vtTurn counts a turn before it begins. Every so often it looks how much garbage there is: some
// kilobytes differ from run to run, what is left between two looks is more.
func vtTurn() {
	const look = 1 << 10
	if !vtSeeded {
		return
	}
	if vtTurns++; vtTurns%look != 0 || vt.flood.Load() == 0 {
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

// vtMayCollect reports whether a trigger counts. The one that fires after two
// minutes without a collection is about real memory and real time.
func vtMayCollect(kind gcTriggerKind) bool {
	return vt == nil || kind == gcTriggerCycle || kind == gcTriggerHeap && !vtSeeded
}
