// Virtual time: one seeded generator in place of every source of chance, so that
// a deterministic program takes the same course every time.
//
// Only what the program itself asks for is drawn from it: maps, select,
// math/rand, crypto/rand. The runtime's own draws (cheaprand: which P to steal
// from, which allocation to sample) happen at real moments and would put the
// others out of step, so they stay apart.

package runtime

import (
	"internal/runtime/atomic"
	_ "unsafe" // for go:linkname
)

var vtRandomState atomic.Uint64

// vtRandom is splitmix64.
//
//go:nosplit
func vtRandom() uint64 {
	z := vtRandomState.Add(-0x61c8864680b583eb) // 2⁶⁴ divided by the golden ratio
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// vtSeed replaces the seed of the generator that is used before there are
// threads: hash keys, the place of the heap.
func vtSeed(seed *[32]byte) {
	if vtSeeded {
		vtRandomBytes(seed[:])
	}
}

// vtSelectOrder is selectgo's draw.
//
//go:nosplit
func vtSelectOrder(n uint32) uint32 {
	if vtSeeded {
		return randn(n)
	}
	return cheaprandn(n)
}

// vtRandomBytes stands in for getrandom(2).
//
//go:nosplit
func vtRandomBytes(to []byte) {
	word := uint64(0)
	for i := range to {
		if i%8 == 0 {
			word = vtRandom()
		}
		to[i] = byte(word)
		word >>= 8
	}
}
