/** Colours as SGR codes of a terminal. */
const codes = { red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36, bold: 1, dim: 2 } as const
export type Colour = keyof typeof codes
export type Paint = (colour: Colour, text: string) => string

export const withColours: Paint = (colour, text) => (text === '' ? '' : `\u001b[${codes[colour]}m${text}\u001b[0m`)
export const withoutColours: Paint = (_, text) => text

type ColourChoice = {
  /** True for `--color`, false for `--no-color`, undefined without a flag. */
  readonly flag: boolean | undefined
  readonly isTerminal: boolean
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Decides on colours by the flag, else by NO_COLOR, else by FORCE_COLOR, else by whether the output is a terminal. */
export function paintFor({ flag, isTerminal, env }: ColourChoice): Paint {
  const isForced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '' && env.FORCE_COLOR !== '0'
  const isWanted = flag ?? (env.NO_COLOR ? false : isForced || isTerminal)
  return isWanted ? withColours : withoutColours
}
