// Icons, from lucide. Icons are decoration: a word or a label next to each carries its meaning.
import { h } from "preact"
import shapes from "portolan:icons"

export function Icon({ name, size = 16, class: cls }: { name: string; size?: number; class?: string }) {
  return (
    <svg
      class={"icon" + (cls ? " " + cls : "")}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      {(shapes[name] ?? shapes["circle-dot"]).map(([tag, attributes]) => h(tag, attributes))}
    </svg>
  )
}
