#include "catalog/renumber.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "catalog/apply.h"
#include "catalog/apply_names.h"
#include "index/tables.h"

namespace weft {
namespace {

Status move_tags(Txn& txn, ModelId model, const RenumberEvent& event) {
  WEFT_TRY(const std::vector<std::string> tags, tags_of(txn, model, event.number));
  for (const std::string& name : tags) {
    WEFT_TRY(TagRow tag, need_row<TagRow>(txn, Table::tags, tag_key(model, name)));
    tag.number = event.to;
    WEFT_CHECK(put(txn, Table::tags, tag_key(model, name), tag));
    WEFT_CHECK(txn.erase(Table::version_tags, version_tag_key(model, event.number, name)));
    WEFT_CHECK(put(txn, Table::version_tags, version_tag_key(model, event.to, name), NumberRow{0}));
  }
  return {};
}

Status tell_children(Txn& txn, VersionId parent, std::uint64_t number) {
  const std::string prefix = key_of(parent);
  std::vector<VersionRow> children;
  WEFT_CHECK(each_entry(txn, Table::children, prefix, [&](const Entry& entry) -> Status {
    WEFT_TRY(VersionRow child, need_row<VersionRow>(txn, Table::versions, entry.key.substr(prefix.size())));
    children.push_back(std::move(child));
    return {};
  }));
  for (VersionRow& child : children) {
    for (ParentRef& of : child.parents)
      if (of.id == parent) of.number = number;
    WEFT_CHECK(put(txn, Table::versions, key_of(child.id), child));
  }
  return {};
}

}  // namespace

Status apply_renumber(Txn& txn, const RenumberEvent& event) {
  WEFT_CHECK(count_sequence(txn, event.sequence, event.revision));
  WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.model));
  if (!model) return damaged(txn, fmt::format("the journal renumbers in model {}, which is not there", event.model));
  WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, event.number));
  WEFT_TRY(const std::optional<VersionRow> taken, find_version(txn, model->id, event.to));
  if (!version || version->uid != event.uid || taken)
    return damaged(txn, fmt::format("the journal gives the number {} to {}@{}, which cannot have it", event.to,
                                    event.model, event.number));
  WEFT_CHECK(skip_numbers(txn, *model, event.to));
  WEFT_CHECK(put(txn, Table::numbers, key_of(model->id, event.number), NumberRow{kLostVersion}));
  WEFT_CHECK(put(txn, Table::numbers, key_of(model->id, event.to), NumberRow{version->id}));
  version->number = event.to;
  WEFT_CHECK(put(txn, Table::versions, key_of(version->id), *version));
  WEFT_CHECK(move_tags(txn, model->id, event));
  WEFT_CHECK(tell_children(txn, version->id, event.to));
  model->next_number = std::max(model->next_number, event.to + 1);
  if (!version->removed) {
    WEFT_TRY(model->latest, latest_below(txn, *model, model->next_number));
  }
  note_change(*model, event.time_ns);
  return put(txn, Table::models, model->name, *model);
}

}  // namespace weft
