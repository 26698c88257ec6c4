#include "cli/shared/import_lines.h"

#include <string>

#include "base/text.h"
#include "cli/shared/table.h"
#include "weft/model/lineage.h"

namespace weft {

void print_import(const Context& context, const ImportReport& report, bool dataset) {
  std::string spec = spec_of(report.outcome.version);
  if (!report.outcome.made) {
    context.print("{} has this content already; no new version\n", spec);
    if (!report.not_kept.empty() && !context.quiet)
      context.note(fmt::format("not kept: {}", joined(report.not_kept, ", ")));
    return;
  }
  context.print("{}  {}, {}, {}: {} new, {} shared\n", spec,
                dataset ? count_of(report.records, "record") : count_of(report.tensors, "tensor"),
                count_of(report.files, "file"), human_bytes(report.logical_bytes),
                human_bytes(report.outcome.new_bytes), human_bytes(report.outcome.shared_bytes));
  if (report.mounted_files > 0)
    context.print("  {} taken from the store by way of its mount: no byte was read or written\n",
                  count_of(report.mounted_files, "file"));
  const VersionRow& row = report.outcome.version;
  for (const ParentRef& parent : row.parents)
    context.print("  parent {}: {}\n", spec_of(parent.model, parent.number), edge_text(parent, row.tensors));
  for (const std::string& name : row.elsewhere) context.print("  parent {}: declared, not stored here\n", name);
}

}  // namespace weft
