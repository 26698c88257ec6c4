// Zip archives. The members of an archive decide its format, and its name does not, because programs give one format
// many names. No archive is refused: a library may read an archive that weft does not understand.
#include "format/builtin.h"
#include "format/hdf5/keras.h"
#include "format/npz.h"
#include "format/parse_errors.h"
#include "format/torch/torch_export.h"
#include "format/torch/torch_zip.h"
#include "format/zip_directory.h"

namespace weft {
namespace {

bool is_named_npz(std::string_view file_name) {
  return file_name.ends_with(".npz");
}

Result<Layout> read_members(FormatInput& files, const ZipDirectory& members) {
  if (is_torch_zip(members)) return read_torch_zip(files.main(), members);  // under any name: its pickle names globals
  if (is_torch_export(members)) return read_torch_export(files.main(), members);
  if (is_named_npz(files.name()) || is_npz(members)) return read_npz(files.main(), members);
  if (is_keras(members)) return read_keras(files.main(), members);
  return Layout{};
}

// Members become extents even if no tensor is found in them, so that versions share them.
void cut_members(const ZipDirectory& members, Layout& layout) {
  for (const ZipMember& member : members.members())
    if (member.data.length > 0) layout.cuts.push_back({0, member.data.offset, member.data.length});
}

Result<Layout> parse_archive(FormatInput& files) {
  WEFT_TRY(const ZipDirectory members, ZipDirectory::read(files.main()));
  WEFT_TRY(Layout layout, read_members(files, members));
  cut_members(members, layout);
  return layout;
}

class Archive final : public Format {
 public:
  std::string_view name() const override { return "archive"; }

  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    return is_named_npz(file_name) || ZipDirectory::begins(head);
  }

  Result<Layout> parse(FormatInput& files) const override {
    auto layout = parse_archive(files);
    if (!layout.ok() && is_malformed(layout.error())) return Error{Errc::unsupported, layout.error().message};
    return layout;
  }
};

}  // namespace

const Format& archive_format() {
  static const Archive format;
  return format;
}

}  // namespace weft
