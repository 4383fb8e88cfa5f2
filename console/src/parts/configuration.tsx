// The empty state of pages that show the selected configuration.
import { session } from "../session"
import { Empty } from "./basics"

/** Says that there is no configuration, or that the user can see none. */
export function NoConfiguration() {
  return session.value?.administrator ? (
    <Empty title="No configurations yet.">
      <a href="/ui/configurations">Create a configuration</a> first.
    </Empty>
  ) : (
    <Empty title="No configurations visible to you." />
  )
}
