// Declarations for the files that generate/bundle.go writes.
declare module "*.css"
declare module "portolan:icons" {
  const icons: Record<string, [string, Record<string, string>][]>
  export default icons
}
