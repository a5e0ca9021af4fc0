import { JudgedServer, type ServerControl } from './judged-server.ts'
import { BrokenRule, judge, NotApplicable, type RuleVerdict } from './rule-verdict.ts'
import { type ServerRule, serverRules } from './server-rules.ts'

type ServerConformance = {
  readonly url: string
  readonly control?: ServerControl
  readonly key?: string
  readonly rules?: readonly ServerRule[]
  readonly onVerdict?: (verdict: RuleVerdict) => void
}

/** Judges a server by its URL: each rule, for each transport that it is about. */
export async function runServerConformance(inputs: ServerConformance): Promise<readonly RuleVerdict[]> {
  const { url, control = {}, key, rules = serverRules, onVerdict } = inputs
  const headers: Record<string, string> = key ? { authorization: `Bearer ${key}` } : {}
  const symbols = await firstSymbols(url, headers)
  const verdicts: RuleVerdict[] = []
  for (const rule of rules) {
    for (const transport of rule.transports ?? (['ws'] as const)) {
      const server = new JudgedServer(url, control, symbols, headers)
      const text = rule.transports ? { ...rule, name: `${rule.name}/${transport}` } : rule
      const verdict = await judge(text, () => rule.run(server, transport).catch(asVerdict))
      server.close()
      verdicts.push(verdict)
      onVerdict?.(verdict)
    }
  }
  return verdicts
}

/** Any other failure, such as a connection that is refused, is the server's. */
function asVerdict(failure: unknown): never {
  throw failure instanceof NotApplicable || failure instanceof BrokenRule ? failure : new BrokenRule(String(failure))
}

async function firstSymbols(url: string, headers: Record<string, string>): Promise<readonly [string, string]> {
  const response = await fetch(`${url}/v1/tokenized-stocks`, { headers })
  const { tokens = [] } = (await response.json()) as { tokens?: readonly { symbol: string }[] }
  const [one, other] = tokens
  if (!one || !other) throw new Error(`${url}/v1/tokenized-stocks lists fewer than two tokens`)
  return [one.symbol, other.symbol]
}
