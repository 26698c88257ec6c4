#include "format/hdf5/hdf5.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "format/builtin.h"
#include "format/hdf5/dataset.h"
#include "format/hdf5/groups.h"
#include "format/layout.h"
#include "format/parse_errors.h"
#include "format/tensor_list.h"

namespace weft {
namespace {

// Walks the groups of one file.
class Hdf5Reader {
 public:
  Hdf5Reader(ByteSource& source, bool verify) : file_(source, verify), datasets_(file_) {}
  Result<Layout> read();

 private:
  struct Object {
    std::vector<Hdf5Link> links;         // of a group
    std::optional<Hdf5Dataset> dataset;  // else; none: a type, which is no tensor
    bool open = false;                   // the walk is within this group
  };

  // `name`: the path of the object. A hard link is a second path of it.
  Status visit(std::uint64_t at, const std::string& name, std::size_t depth);
  Status visit_group(Object& group, const std::string& name, std::size_t depth);
  Result<Object*> object(std::uint64_t at);
  Status add(const Hdf5Dataset& dataset, const std::string& name);

  Hdf5File file_;
  Hdf5Datasets datasets_;
  std::unordered_map<std::uint64_t, Object> objects_;  // by the address of the header
  Layout layout_;
  TensorList tensors_{layout_};
};

Result<Layout> Hdf5Reader::read() {
  WEFT_CHECK(file_.open());
  WEFT_CHECK(visit(file_.root(), "", 0));
  layout_.format = "hdf5";
  tensors_.finish();
  return std::move(layout_);
}

Result<Hdf5Reader::Object*> Hdf5Reader::object(std::uint64_t at) {
  if (const auto known = objects_.find(at); known != objects_.end()) return &known->second;
  Object found;
  if (!datasets_.knows_type(at)) {
    WEFT_TRY(const Hdf5Header header, Hdf5Header::read(file_, at));
    if (is_hdf5_group(header)) {
      WEFT_TRY(found.links, read_links(file_, header));
    } else if (header.find(Hdf5MessageType::layout) != nullptr) {
      WEFT_TRY(found.dataset, datasets_.read(header));
      layout_.cuts.insert(layout_.cuts.end(), found.dataset->cuts.begin(), found.dataset->cuts.end());
      found.dataset->cuts.clear();
    } else {
      datasets_.remember_type(at, header);
    }
  }
  return &objects_.emplace(at, std::move(found)).first->second;
}

Status Hdf5Reader::visit(std::uint64_t at, const std::string& name, std::size_t depth) {
  WEFT_CHECK(file_.keep_link(name.size()));
  WEFT_TRY(Object* const found, object(at));
  if (found->dataset) return add(*found->dataset, name);
  return visit_group(*found, name, depth);
}

// A group may hold a link to itself, or to a group around it. Its objects then have names without end.
Status Hdf5Reader::visit_group(Object& group, const std::string& name, std::size_t depth) {
  if (group.open) {
    hide(layout_, {name, 0, "a link to a group that it is in", {}, {}});
    return {};
  }
  if (depth > limits::kHdf5DepthMax)
    return hdf5_error(fmt::format("expected groups nested at most {} deep, got more", limits::kHdf5DepthMax));
  group.open = true;
  for (const Hdf5Link& link : group.links) {
    const std::string path = name.empty() ? link.name : name + "." + link.name;
    if (link.hard)
      WEFT_CHECK(visit(link.header, path, depth + 1));
    else
      hide(layout_, {path, 0, "a soft or external link, which is not followed", {}, {}});
  }
  group.open = false;
  return {};
}

Status Hdf5Reader::add(const Hdf5Dataset& dataset, const std::string& name) {
  HiddenTensor hidden = dataset.hidden;
  hidden.name = name;
  if (hidden.why.empty()) {
    const Status kept = file_.keep_chunks(dataset.tensor.parts.size());
    if (kept.ok()) return tensors_.add(dataset.tensor, {name, 0, "", {}, {}});
    hidden.why = kept.error().message;
  }
  hide(layout_, std::move(hidden));
  return {};
}

class Hdf5 final : public Format {
 public:
  std::string_view name() const override { return "hdf5"; }

  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    return file_name.ends_with(".h5") || file_name.ends_with(".hdf5") || is_hdf5(head);
  }

  Result<Layout> parse(FormatInput& files) const override { return read_hdf5(files.main()); }
};

}  // namespace

Result<Layout> read_hdf5(ByteSource& file, bool verify) {
  auto layout = Hdf5Reader(file, verify).read();
  if (!layout.ok() && is_malformed(layout.error()))
    return Error{Errc::unsupported, fmt::format("hdf5: {}", layout.error().message)};
  return layout;
}

const Format& hdf5_format() {
  static const Hdf5 format;
  return format;
}

}  // namespace weft
