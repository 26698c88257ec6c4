#include "index/scratch_index.h"

#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "os/sys.h"

namespace weft {
namespace {

constexpr std::string_view kScratch = "rebuild-";

}  // namespace

Result<ScratchIndex> ScratchIndex::make(const SafePath& parent) {
  ScratchIndex scratch(parent / fmt::format("{}{}", kScratch, random_hex(8)));
  WEFT_CHECK(make_directory(scratch.dir_));
  WEFT_CHECK(Env::create(scratch.dir_));
  EnvOptions options;
  options.write = true;
  options.sync = false;
  WEFT_TRY(scratch.env_, Env::open(scratch.dir_, options));
  return scratch;
}

ScratchIndex::~ScratchIndex() {
  env_.reset();
  if (!dir_.str().empty()) static_cast<void>(remove_tree(dir_));
}

Status ScratchIndex::close() {
  WEFT_CHECK(env_->sync());
  env_.reset();
  return {};
}

Status remove_stale_scratch(const SafePath& index_dir) {
  WEFT_TRY(std::vector<std::string> names, list_directory(index_dir));
  for (const std::string& name : names)
    if (name.starts_with(kScratch)) WEFT_CHECK(remove_tree(index_dir / name));
  return {};
}

}  // namespace weft
