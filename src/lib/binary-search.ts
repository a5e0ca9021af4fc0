/** Returns the lowest number from `low` to `high` for which `holds` is true. It must be true for all numbers above too. */
export async function binarySearch(low: number, high: number, holds: (number: number) => Promise<boolean>): Promise<number> {
  let [first, last] = [low, high]
  while (first < last) {
    const middle = Math.floor((first + last) / 2)
    if (await holds(middle)) last = middle
    else first = middle + 1
  }
  return last
}
