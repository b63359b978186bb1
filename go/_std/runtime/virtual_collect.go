// Virtual time: garbage collection when the coordinator asks for it.
//
// When a collection happens depends on real time: on how fast the threads are,
// and on the clock. A deterministic program therefore collects only when it is
// idle and told to.

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

// vtMayCollect reports whether a trigger counts. The one that fires after two
// minutes without a collection is about real memory and real time.
func vtMayCollect(kind gcTriggerKind) bool {
	return vt == nil || kind == gcTriggerCycle || kind == gcTriggerHeap && !vtSeeded
}
