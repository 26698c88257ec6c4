#include "weft/store.h"

#include <utility>

#include "store/layout.h"
#include "store/rebuild.h"
#include "store/store_impl.h"

namespace weft {

StoreImpl::StoreImpl(std::string path, StoreInfo info, const OpenOptions& options, CommitHooks hooks,
                     std::unique_ptr<Env> env)
    : path_(std::move(path)),
      info_(std::move(info)),
      options_(options),
      hooks_(std::move(hooks)),
      env_(std::move(env)),
      journal_(path_),
      manifests_(path_),
      packs_(path_, info_.digest, *this) {}

Result<std::unique_ptr<StoreImpl>> StoreImpl::open(const std::string& path, const OpenOptions& options,
                                                   CommitHooks hooks) {
  WEFT_TRY(StoreInfo info, read_identity(path));
  WEFT_CHECK(check_format(path, info));
  EnvOptions env_options;
  env_options.write = options.write;
  env_options.map_bytes = options.map_bytes;
  env_options.reader_wait_ms = options.reader_wait_ms;
  WEFT_TRY(std::unique_ptr<Env> env, Env::open(path + "/index", env_options));
  return std::unique_ptr<StoreImpl>(new StoreImpl(path, std::move(info), options, std::move(hooks), std::move(env)));
}

Status Store::create(const std::string& path, const CreateOptions& options) {
  return create_store(path, options);
}

Result<std::unique_ptr<Store>> Store::open(const std::string& path, const OpenOptions& options) {
  WEFT_TRY(std::unique_ptr<StoreImpl> store, StoreImpl::open(path, options));
  return std::unique_ptr<Store>(std::move(store));
}

Result<FsckReport> Store::rebuild(const std::string& path, const ContentDecoder& decode, Progress& progress) {
  return rebuild_store(path, decode, progress);
}

}  // namespace weft
