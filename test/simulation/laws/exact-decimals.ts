/** An exact decimal as published, from units of its last place. */
export function decimalText(units: bigint, scale: number): string {
  const digits = units.toString().padStart(scale + 1, '0')
  return `${digits.slice(0, -scale)}.${digits.slice(-scale)}`.replace(/\.?0+$/, '')
}

/** An exact decimal as published, from a number with 18 decimals. */
export const wadText = (wad: bigint): string => decimalText(wad, 18)
