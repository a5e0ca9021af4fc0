/** A rule as it is printed: its name, its section of the contract, and its sentence. */
export type RuleText = { readonly name: string; readonly section: string; readonly sentence: string }

/** Verdict of a rule about a client, or about a server. */
export type RuleVerdict = {
  readonly rule: string
  readonly section: string
  readonly sentence: string
  readonly outcome: 'kept' | 'broken' | 'optional' | 'not applicable'
  /** How the client, or the server, broke the rule, or why the rule does not apply; null if the rule was kept. */
  readonly detail: string | null
}

export class BrokenRule extends Error {}
export class NotApplicable extends Error {}

/** Runs the scenario of a rule. A client or a server may break an optional rule, and conforms all the same. */
export async function judge(
  { name, section, sentence }: RuleText,
  scenario: () => Promise<void>,
  isOptional = false,
): Promise<RuleVerdict> {
  const about = { rule: name, section, sentence }
  try {
    await scenario()
    return { ...about, outcome: 'kept', detail: null }
  } catch (failure) {
    if (!(failure instanceof NotApplicable || failure instanceof BrokenRule)) throw failure
    const outcome = failure instanceof NotApplicable ? 'not applicable' : 'broken'
    return { ...about, outcome: isOptional ? 'optional' : outcome, detail: failure.message }
  }
}
