import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { SeededRandom } from '../simulation/seeded-random.ts'
import type { Mutant } from './mutant-list.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Folders of mutants, and how many each gets. */
const shares: Readonly<Record<string, number>> = {
  'src/relay/chain': 30,
  'src/relay/ingest': 25,
  'src/relay/tape': 20,
  'src/relay/edge': 25,
  'src/relay/gateway': 15,
  'src/sdk/client': 10,
}
const PER_FILE_BOUND = 3
/** A dropped warning or a dropped count changes what an operator reads, and no update. */
const isReport = /\b(warn|count|log|debug|info)\b/

/** For these the order of two arguments does not matter. */
const isSymmetric = /^(Math\.|isSame|differs|isDeepStrictEqual)/

type Candidate = Omit<Mutant, 'id' | 'nth'> & { readonly position: number }

const looser: Partial<Record<ts.SyntaxKind, string>> = {
  [ts.SyntaxKind.LessThanToken]: '<=',
  [ts.SyntaxKind.LessThanEqualsToken]: '<',
  [ts.SyntaxKind.GreaterThanToken]: '>=',
  [ts.SyntaxKind.GreaterThanEqualsToken]: '>',
}
const isOne = (node: ts.Expression) => ts.isNumericLiteral(node) && node.text === '1'

/** Returns the kind of mistake that a node allows, the part of the source to replace, and its replacement. */
function mistakeIn(node: ts.Node, checker: ts.TypeChecker): readonly [kind: string, part: ts.Node, text: string] | null {
  if (ts.isIfStatement(node)) return ['negated', node.expression, `!(${node.expression.getText()})`]
  if (ts.isConditionalExpression(node)) return ['negated', node.condition, `!(${node.condition.getText()})`]
  if (ts.isBinaryExpression(node)) {
    const { left, operatorToken, right } = node
    const other = looser[operatorToken.kind]
    if (other) return ['limit', node, `${left.getText()} ${other} ${right.getText()}`]
    const isStep = operatorToken.kind === ts.SyntaxKind.PlusToken || operatorToken.kind === ts.SyntaxKind.MinusToken
    if (isStep && isOne(right)) return ['off by one', node, left.getText()]
    if (operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken && ts.isParenthesizedExpression(node.parent) === false)
      return ['and/or', node, `(${left.getText()} || ${right.getText()})`]
  }
  if (
    ts.isExpressionStatement(node) &&
    ts.isCallExpression(node.expression) &&
    !isReport.test(node.expression.expression.getText())
  )
    return ['dropped', node, '{}']
  if (ts.isCallExpression(node) && node.arguments.length > 1 && !isSymmetric.test(node.expression.getText())) {
    const [first, second] = node.arguments
    if (first && second && isSameType(checker, first, second)) return ['swapped', node, swapped(node, first, second)]
  }
  return null
}

const isSameType = (checker: ts.TypeChecker, first: ts.Expression, second: ts.Expression): boolean => {
  const widened = [first, second].map((node) =>
    checker.typeToString(checker.getBaseTypeOfLiteralType(checker.getTypeAtLocation(node))),
  )
  return widened[0] === widened[1] && first.getText() !== second.getText()
}

function swapped(call: ts.CallExpression, first: ts.Expression, second: ts.Expression): string {
  const rest = call.arguments.slice(2).map((argument) => `, ${argument.getText()}`)
  return `${call.expression.getText()}(${second.getText()}, ${first.getText()}${rest.join('')})`
}

function candidatesIn(source: ts.SourceFile, checker: ts.TypeChecker): readonly Candidate[] {
  const lines = source.text.split('\n')
  const file = relative(ROOT, source.fileName)
  const found: Candidate[] = []
  const visit = (node: ts.Node): void => {
    const mistake = mistakeIn(node, checker)
    if (mistake) {
      const [kind, part, text] = mistake
      const [start, end] = [part.getStart(), part.getEnd()].map((at) => source.getLineAndCharacterOfPosition(at))
      const whole = lines[start?.line ?? 0] ?? ''
      if (start && end && start.line === end.line && !whole.trim().startsWith('*')) {
        const changed = (whole.slice(0, start.character) + text + whole.slice(end.character)).trim()
        found.push({ kind, file, line: whole.trim(), changed, position: part.getStart() })
      }
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** Draws mutants of each folder and kind, the same for the same seed and source. */
export function drawMutants(seed: string): readonly Mutant[] {
  const { config } = ts.readConfigFile(`${ROOT}/tsconfig.json`, ts.sys.readFile)
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT)
  const program = ts.createProgram(fileNames, options)
  const checker = program.getTypeChecker()
  const random = new SeededRandom('mutants', seed)
  return Object.entries(shares).flatMap(([folder, share]) => {
    const files = program.getSourceFiles().filter(({ fileName }) => relative(ROOT, fileName).startsWith(`${folder}/`))
    const candidates = shuffled(
      files.flatMap((source) => candidatesIn(source, checker)),
      random,
    )
    return spread(candidates, share).map(({ position, ...mutant }, index) => ({
      id: `${folder.split('/').at(folder.startsWith('src/sdk') ? 1 : 2)}-${String(index + 1).padStart(2, '0')}`,
      ...mutant,
      nth: nthOf(mutant, position),
    }))
  })
}

/** Takes the kinds in turn, and few of each file. */
function spread(candidates: readonly Candidate[], count: number): readonly Candidate[] {
  const kinds = new Set(candidates.map(({ kind }) => kind))
  const byKind = [...kinds].map((kind) => candidates.filter((candidate) => candidate.kind === kind))
  const taken: Candidate[] = []
  for (let turn = 0; taken.length < count && byKind.some((left) => left.length > 0); turn += 1) {
    const next = byKind[turn % byKind.length]?.shift()
    const ofFile = taken.filter(({ file }) => file === next?.file)
    if (next && ofFile.length < PER_FILE_BOUND && !ofFile.some(({ line }) => line === next.line)) taken.push(next)
  }
  return taken
}

function nthOf({ file, line }: Omit<Candidate, 'position'>, position: number): number {
  const before = readFileSync(`${ROOT}/${file}`, 'utf8').slice(0, position).split('\n')
  return before.slice(0, -1).filter((text) => text.trim() === line).length + 1
}

function shuffled<T>(items: readonly T[], random: SeededRandom): readonly T[] {
  return items
    .map((item) => [random.next(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item)
}
