import type { ComponentChildren } from 'preact'

type HeadProps = { readonly titles: readonly string[] }

export const TableHead = ({ titles }: HeadProps) => (
  <thead>
    <tr>
      {titles.map((title, column) => (
        <th key={column} scope="col">
          {title}
        </th>
      ))}
    </tr>
  </thead>
)

type TableProps = HeadProps & { readonly label: string; readonly name: string; readonly children: ComponentChildren }

/** A table that is scrolled sideways where it has no room. */
export const ScrollTable = ({ label, name, titles, children }: TableProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls it
  <section class="scroll" tabIndex={0} aria-label={label}>
    <table class={name}>
      <TableHead titles={titles} />
      <tbody>{children}</tbody>
    </table>
  </section>
)
