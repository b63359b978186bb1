// Virtual time: one seeded generator replaces every source of randomness, so
// that a deterministic program behaves the same in every run.
//
// Only random numbers that the program requests come from it: maps, select,
// math/rand, crypto/rand. The runtime's own draws (cheaprand: which P to steal
// from, which allocation to sample) depend on real time and would change the
// sequence, so they keep their own generator.

package runtime

import (
	"internal/runtime/atomic"
	_ "unsafe" // for go:linkname
)

var vtRandomState atomic.Uint64

// vtRandom returns the next number (splitmix64).
//
//go:nosplit
func vtRandom() uint64 {
	z := vtRandomState.Add(-0x61c8864680b583eb) // 2⁶⁴ divided by the golden ratio
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// vtSeed replaces the seed of the generator that Go uses before it starts
// threads, for hash keys and the address of the heap.
func vtSeed(seed *[32]byte) {
	if vtSeeded {
		vtRandomBytes(seed[:])
	}
}

// vtSelectOrder draws the order in which selectgo polls its cases.
//
//go:nosplit
func vtSelectOrder(n uint32) uint32 {
	if vtSeeded {
		return randn(n)
	}
	return cheaprandn(n)
}

// vtRandomBytes replaces getrandom(2).
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
