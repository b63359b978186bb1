/** Typed arrays that grow, for columns to which a live run adds rows. */

type TypedArray = Uint8Array | Int32Array | Float32Array | Float64Array;

/** Return the array if it has room for `length` rows, otherwise a copy of at least twice its size. */
export function withRoom<Column extends TypedArray>(column: Column, length: number, fill = 0): Column {
  if (column.length >= length) return column;
  const Type = column.constructor as new (length: number) => Column;
  const larger = new Type(Math.max(length, column.length * 2, 64));
  larger.set(column);
  if (fill !== 0) larger.fill(fill, column.length);
  return larger;
}

/** Return the number of sorted values that are at most `limit`. */
export function countUpTo(values: Float64Array, length: number, limit: number): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
