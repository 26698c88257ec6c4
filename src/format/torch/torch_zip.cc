#include "format/torch/torch_zip.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "format/parse_errors.h"
#include "format/torch/pickle.h"
#include "format/torch/torch_globals.h"
#include "format/torch/torch_members.h"
#include "format/torch/torch_tensors.h"

namespace weft {
namespace {

constexpr std::string_view kDataPickle = "data.pkl", kConstantsPickle = "constants.pkl";

bool is_data_pickle(const ZipMember& member) {
  const std::string_view name = member.name;
  return name == kDataPickle || name.substr(name.find('/') + 1) == kDataPickle;
}

// Reads one archive once.
class TorchZip {
 public:
  TorchZip(ByteSource& archive, const ZipDirectory& members)
      : archive_(archive), members_(members), tensors_(layout_) {}

  Result<Layout> read();

 private:
  Status read_all();
  // Adds the tensors of a pickle, whose storages are below `folder`.
  Status read_pickle(const ZipMember& member, const std::string& folder, std::string_view prefix);
  Result<Range> storage(const std::string& path) const;

  ByteSource& archive_;
  const ZipDirectory& members_;
  std::string root_;  // "archive/"
  Layout layout_;
  TorchTensors tensors_;
  std::vector<std::string> globals_;
};

Result<Layout> TorchZip::read() {
  Status done = read_all();
  if (!done.ok() && !is_malformed(done.error())) return std::move(done).error();
  if (done.ok()) {
    layout_.format = "torch zip";
    tensors_.finish();
  } else {
    layout_ = unread_layout(done.error());
  }
  keep_globals(layout_, globals_);
  return std::move(layout_);
}

Status TorchZip::read_all() {
  const auto all = members_.members();
  if (const auto count = std::ranges::count_if(all, is_data_pickle); count != 1)
    return Error{Errc::unsupported, fmt::format("expected one {} in the archive, got {}", kDataPickle, count)};
  const ZipMember& data = *std::ranges::find_if(all, is_data_pickle);
  root_ = data.name.substr(0, data.name.size() - kDataPickle.size());
  WEFT_CHECK(check_torch_byte_order(archive_, members_, root_));
  WEFT_CHECK(read_pickle(data, root_ + "data/", ""));
  const ZipMember* constants = members_.find(root_ + std::string(kConstantsPickle));
  return constants == nullptr ? Status{} : read_pickle(*constants, root_ + "constants/", "constants");
}

// torch.load reads only the first pickle of a member. The globals of pickles behind it are listed too.
Status TorchZip::read_pickle(const ZipMember& member, const std::string& folder, std::string_view prefix) {
  WEFT_TRY(std::string bytes, torch_member_text(archive_, member, limits::kPickleMax));
  Pickle pickle(std::move(bytes));
  const auto value = pickle.read_next();
  const StoragePlace storages = [&](std::string_view key) { return storage(folder + std::string(key)); };
  Status added = value.ok() ? tensors_.add(pickle, *value, prefix, member.data.offset, storages) : value.error();
  while (!pickle.at_end()) static_cast<void>(pickle.read_next());
  for (const std::string& name : pickle.globals())
    if (std::ranges::find(globals_, name) == globals_.end()) globals_.push_back(name);
  return added;
}

Result<Range> TorchZip::storage(const std::string& path) const {
  const ZipMember* member = members_.find(path);
  if (member == nullptr) return Error{Errc::not_found, "its storage is not in the file"};
  if (!member->stored) return Error{Errc::unsupported, "compressed"};
  return member->data;
}

}  // namespace

bool is_torch_zip(const ZipDirectory& members) {
  return std::ranges::any_of(members.members(), is_data_pickle);
}

Result<Layout> read_torch_zip(ByteSource& archive, const ZipDirectory& members) {
  return TorchZip(archive, members).read();
}

}  // namespace weft
