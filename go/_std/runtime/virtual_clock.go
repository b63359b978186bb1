// Virtual time: the functions that read the clock.

package runtime

import _ "unsafe" // for go:linkname

// vtNano returns the virtual monotonic time.
//
//go:nosplit
func vtNano() int64 {
	return vt.now.Load() - vtEpoch
}

// time_now replaces Go's function, which the overlay renames to vtRealNow.
//
//go:linkname time_now time.now
func time_now() (sec int64, nsec int32, mono int64) {
	if vt == nil {
		return vtRealNow()
	}
	now := vt.now.Load()
	return now / 1e9, int32(now % 1e9), now - vtEpoch
}

// vtNextTimer returns the virtual Unix time of the next timer. It needs no P.
//
//go:nowritebarrierrec
func vtNextTimer(ps []*p) int64 {
	next := int64(0)
	for _, pp := range ps {
		if when := pp.timers.wakeTime(); when != 0 && (next == 0 || when < next) {
			next = when
		}
	}
	if next == 0 || next >= vtNever-vtEpoch {
		return vtNever
	}
	return next + vtEpoch
}
