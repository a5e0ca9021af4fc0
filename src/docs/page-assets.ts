import { createHash } from 'node:crypto'
import { html, raw } from 'hono/html'
import { ORIGIN } from './snippets.ts'

/** The source in a content security policy that allows this script or style. */
export const cspHashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const style = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --paper: #fff; --shade: #f4f6f8; --line: #d8dee4; --mark: #0b5cad }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9aa4af; --paper: #0f1318; --shade: #181e25; --line: #2c343d; --mark: #6cb0f5 } }
* { box-sizing: border-box }
html { scroll-behavior: smooth; scroll-padding-top: 1rem }
body { margin: 0; color: var(--ink); background: var(--paper); font: 16px/1.55 system-ui, sans-serif }
.layout { display: grid; grid-template-columns: 15rem minmax(0, 54rem); gap: 3rem; max-width: 76rem; margin: 0 auto; padding: 0 1.25rem }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding: 2rem 0; font-size: .9rem }
nav ul { list-style: none; margin: 0 0 1rem; padding: 0 }
nav b { display: block; margin-top: 1rem; color: var(--soft); font-weight: 600 }
main { padding: 2rem 0 6rem }
.alone { max-width: 60rem; margin: 0 auto; padding-inline: 1.25rem }
a { color: var(--mark); text-decoration: none }
a:hover { text-decoration: underline }
h1 { font-size: 2rem; margin: 0 }
h2 { margin-top: 3.5rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line) }
h3 { margin-top: 2.5rem; font-size: 1.05rem }
h3 code { font-size: 1rem }
h3 .verb { color: var(--soft); margin-right: .5rem }
h4 { margin: 1.25rem 0 .25rem; font-size: .85rem; color: var(--soft); font-weight: 600 }
code, pre { font: 13.5px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
.line { position: relative; margin: .75rem 0 }
pre { margin: 0; padding: .8rem 4.5rem .8rem 1rem; overflow-x: auto; background: var(--shade); border: 1px solid var(--line); border-radius: 6px }
.line button { position: absolute; top: .4rem; right: .4rem; padding: .1rem .6rem; font: 12px/1.6 system-ui, sans-serif; color: var(--soft); background: var(--paper); border: 1px solid var(--line); border-radius: 4px; cursor: pointer }
.scroll { overflow-x: auto }
.scroll + .scroll { margin-top: 1.25rem }
.scroll table { border-collapse: collapse; width: 100%; font-size: .9rem }
.scroll :is(th, td):first-child { width: 8.5rem }
.scroll :is(th, td) { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line) }
.scroll th { color: var(--soft); font-weight: 600 }
.scroll td:nth-child(2) { color: var(--soft); min-width: 8rem; max-width: 18rem }
.soft { color: var(--soft) }
.caveat { padding: .7rem 1rem; border-left: 3px solid var(--mark); background: var(--shade) }
summary { cursor: pointer; color: var(--mark); font-size: .9rem }
@media (max-width: 60rem) { .layout { display: block } nav { position: static; max-height: none; padding-bottom: 0 } nav ul { columns: 3 } }
`

/** The begin of a page, whose head is still open. */
export const headOf = (title: string) => html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>stocktape: ${title}</title>
<link rel="icon" href="data:,">
<style>${raw(style)}</style>`

/** A script that replaces the origin in every code block with the page's own origin, and adds a copy button. */
export const script = `
const places = [[${JSON.stringify(ORIGIN)}, location.origin], [${JSON.stringify(ORIGIN.replace('http', 'ws'))}, location.origin.replace('http', 'ws')]]
for (const line of document.querySelectorAll('pre')) {
  for (const [there, here] of places) line.textContent = line.textContent.replaceAll(there, here)
  const button = document.createElement('button')
  button.textContent = 'copy'
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(line.textContent)
      button.textContent = 'copied'
    } catch {
      getSelection().selectAllChildren(line)
    }
  }
  line.after(button)
}
`

/** Allows the style of these pages, these scripts, and connections to their own origin. */
export const policyFor = (...scripts: readonly string[]): string =>
  [
    "default-src 'none'",
    `style-src ${cspHashOf(style)}`,
    `script-src ${scripts.join(' ')}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
