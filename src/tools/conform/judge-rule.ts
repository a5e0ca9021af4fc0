import type { Rule } from './rules.ts'
import { BrokenRule, NotApplicable, ScenarioStage } from './scenario-stage.ts'

export type RuleVerdict = {
  readonly rule: string
  readonly section: string
  readonly sentence: string
  readonly outcome: 'kept' | 'broken' | 'optional' | 'not applicable'
  /** Null if the rule was kept. */
  readonly detail: string | null
}

export async function judge(rule: Rule, command: readonly string[]): Promise<RuleVerdict> {
  const { name, section, sentence, isOptional = false } = rule
  const stage = await ScenarioStage.open(command, name)
  const verdict = (outcome: RuleVerdict['outcome'], detail: string | null): RuleVerdict => ({
    rule: name,
    section,
    sentence,
    outcome,
    detail,
  })
  try {
    await rule.run(stage)
    return verdict('kept', null)
  } catch (failure) {
    if (failure instanceof NotApplicable) return verdict(isOptional ? 'optional' : 'not applicable', failure.message)
    if (!(failure instanceof BrokenRule)) throw failure
    return verdict(isOptional ? 'optional' : 'broken', failure.message)
  } finally {
    await stage.close()
  }
}

const marks = { kept: '✓', broken: '✗', optional: '-', 'not applicable': '-' } as const
export const NAME_COLUMN = 22

/** A rule that is not kept has a second line, which says what happened. */
export function verdictLines({ rule, section, sentence, outcome, detail }: RuleVerdict): readonly string[] {
  const first = `${marks[outcome]} ${rule.padEnd(NAME_COLUMN)} ${section} ${sentence}`
  if (detail === null) return [first]
  const label = { kept: '', broken: 'broken: ', optional: 'not kept, optional: ', 'not applicable': 'not applicable: ' }[outcome]
  return [first, `  ${' '.repeat(NAME_COLUMN)} ${label}${detail}`]
}

export function summary(verdicts: readonly RuleVerdict[]): string {
  const count = (outcome: RuleVerdict['outcome']) => verdicts.filter((verdict) => verdict.outcome === outcome).length
  const others = count('optional') + count('not applicable')
  return `${count('kept')} rules kept, ${count('broken')} broken, ${others} not applicable or optional`
}
