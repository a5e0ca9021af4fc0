import { JudgedServer, type ServerControl } from './judged-server.ts'
import type { RuleVerdict } from './rules.ts'
import { BrokenRule, NotApplicable } from './scenario-driver.ts'
import { type ServerRule, serverRules } from './server-rules.ts'
import type { JsonTransport } from './server-stream.ts'

export type ServerConformance = {
  readonly url: string
  readonly control?: ServerControl
  /** Two symbols of the list; the first two tokens of the list if it is absent. */
  readonly symbols?: readonly [string, string]
  readonly key?: string
  readonly rules?: readonly ServerRule[]
  readonly onVerdict?: (verdict: RuleVerdict) => void
}

/** Judges a server by its URL: each rule, for each transport that it is about. */
export async function runServerConformance({
  url,
  control = {},
  key,
  rules = serverRules,
  ...rest
}: ServerConformance): Promise<readonly RuleVerdict[]> {
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {}
  const symbols = rest.symbols ?? (await firstSymbols(url, headers))
  const verdicts: RuleVerdict[] = []
  for (const rule of rules) {
    for (const transport of rule.transports ?? (['ws'] as const)) {
      const server = new JudgedServer(url, control, symbols, headers)
      const verdict = await judge(rule, server, transport)
      server.close()
      verdicts.push(verdict)
      rest.onVerdict?.(verdict)
    }
  }
  return verdicts
}

async function judge(rule: ServerRule, server: JudgedServer, transport: JsonTransport): Promise<RuleVerdict> {
  const { section, sentence } = rule
  const about = { rule: rule.transports ? `${rule.name}/${transport}` : rule.name, section, sentence }
  try {
    await rule.run(server, transport)
    return { ...about, outcome: 'kept', detail: null }
  } catch (failure) {
    if (failure instanceof NotApplicable) return { ...about, outcome: 'not applicable', detail: failure.message }
    return { ...about, outcome: 'broken', detail: failure instanceof BrokenRule ? failure.message : String(failure) }
  }
}

async function firstSymbols(url: string, headers: Record<string, string>): Promise<readonly [string, string]> {
  const response = await fetch(`${url}/v1/tokenized-stocks`, { headers })
  const { tokens = [] } = (await response.json()) as { tokens?: readonly { symbol: string }[] }
  const [one, other] = tokens
  if (!one || !other) throw new Error(`${url}/v1/tokenized-stocks lists fewer than two tokens`)
  return [one.symbol, other.symbol]
}
