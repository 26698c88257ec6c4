#include "cli/context.h"

#include "base/sys.h"
#include "weft/node.h"

namespace weft {
namespace {

// Nothing there, or a directory with nothing in it.
Result<bool> is_vacant(const std::string& path) {
  auto st = stat_file(path);
  if (!st.ok() && st.error().code == Errc::not_found) return true;
  if (!st.ok()) return std::move(st).error();
  if (!S_ISDIR(st->st_mode)) return false;
  WEFT_TRY(auto names, list_directory(path));
  return names.empty();
}

}  // namespace

std::string Context::store_path() const {
  if (!store_option.empty()) return store_option;
  auto variable = [&](const char* name) { return environment_.variable(name).value_or(""); };
  if (std::string path = variable("WEFT_STORE"); !path.empty()) return path;
  if (environment_.is_root) return "/var/lib/weft";
  if (std::string data = variable("XDG_DATA_HOME"); !data.empty()) return data + "/weft";
  return variable("HOME") + "/.local/share/weft";
}

Status Context::create(const CreateOptions& options) const {
  std::string path = store_path();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (auto slash = path.rfind('/'); slash != std::string::npos && slash > 0)
    WEFT_CHECK(make_directories(path.substr(0, slash)));
  return Store::create(path, options);
}

Result<std::unique_ptr<Store>> Context::open(bool write) const {
  OpenOptions options;
  options.write = write;
  options.decode = content_decoder();
  auto store = Store::open(store_path(), options);
  bool named = !store_option.empty() || !environment_.variable("WEFT_STORE").value_or("").empty();
  if (store.ok() || named || store.error().code != Errc::not_found) return store;
  return Error{Errc::not_found, fmt::format("{}; --store or WEFT_STORE names another", store.error().message)};
}

Result<std::unique_ptr<Store>> Context::open_or_create() const {
  WEFT_TRY(bool vacant, is_vacant(store_path()));
  if (vacant) {
    Status made = create({});
    if (!made.ok() && made.error().code != Errc::exists) return std::move(made).error();  // exists: by another just now
    if (made.ok() && !quiet) note(fmt::format("made a store in {}", store_path()));
  }
  return open_to_write();
}

ProgressBar Context::progress() const {
  bool shown = environment_.err_is_terminal && !quiet;
  return ProgressBar(shown ? &environment_.err : nullptr, environment_.columns, environment_.interrupt);
}

}  // namespace weft
