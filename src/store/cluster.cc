// The store in a cluster. Temporary: what is not here yet says so.
#include <fmt/core.h>

#include "store/store_impl.h"

namespace weft {
namespace {

Error not_yet(std::string_view what) {
  return Error{Errc::unsupported, fmt::format("{}: not in this build", what)};
}

}  // namespace

Result<std::unique_ptr<ClusterStore>> ClusterStore::open(const std::string& path, const OpenOptions& options) {
  OpenOptions writing = options;
  writing.write = true;
  WEFT_TRY(std::unique_ptr<StoreImpl> store, StoreImpl::open(path, writing));
  return std::unique_ptr<ClusterStore>(std::move(store));
}

Status StoreImpl::join(const ClusterIdentity&) {
  return not_yet("join");
}
Result<MirrorOutcome> StoreImpl::mirror(std::span<const MirrorChange>, std::uint64_t) {
  return not_yet("mirror");
}
Status StoreImpl::adopt(std::span<const Adoption>) {
  return not_yet("adopt");
}
Result<std::unique_ptr<FetchPack>> StoreImpl::fetch_pack(std::uint64_t) {
  return not_yet("fetch_pack");
}
Result<std::unique_ptr<FetchPack>> StoreImpl::resume_fetch(PackId) {
  return not_yet("resume_fetch");
}
Result<std::vector<CachedPack>> StoreImpl::cached_packs() {
  return not_yet("cached_packs");
}
Result<EvictReport> StoreImpl::evict(const EvictOptions&) {
  return not_yet("evict");
}
Status StoreImpl::pin(std::string_view, std::uint64_t, bool) {
  return not_yet("pin");
}
Status StoreImpl::saved(std::span<const VersionId>) {
  return not_yet("saved");
}

}  // namespace weft
