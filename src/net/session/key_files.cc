#include "net/session/key_files.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/limits.h"
#include "base/text.h"
#include "net/session/cluster_keys.h"
#include "os/sys.h"

namespace weft::net {
namespace {

std::string next_of(const std::string& file) {
  return file + kNextKeySuffix;
}
std::string previous_of(const std::string& file) {
  return file + kPreviousKeySuffix;
}

std::string made_of(const std::string& file) {
  return file + ".made";
}

Status sync_parent(const std::string& file) {
  const std::string parent = std::filesystem::path(file).parent_path().string();
  return sync_directory(parent.empty() ? "." : parent);
}

// Returns the name of the key in a file; "" if there is no file.
Result<std::string> name_in(const std::string& path) {
  const auto key = read_cluster_key(path);
  if (key.ok()) return ClusterKey(*key).name();
  return key.error().code == Errc::not_found ? Result<std::string>(std::string()) : key.error();
}

std::string name_of(const std::string& key) {
  return ClusterKey(key_of(std::as_bytes(std::span(key)))).name();
}

// Returns the name of a key in FILE.made. Returns "" if the file does not exist, or has no name in it.
Result<std::string> made_name(const std::string& file) {
  const std::string path = made_of(file);
  const auto opened = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!opened.ok() && opened.error().code == Errc::not_found) return std::string();
  if (!opened.ok()) return opened.error();
  WEFT_TRY(const struct stat st, stat_fd(opened->get(), path));
  WEFT_CHECK(check_private_file(st, "record of a new key", path));
  WEFT_TRY(const auto bytes, read_whole(opened->get(), st, limits::kKeyFileMax, path));
  std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  name.resize(std::min(name.find('\n'), name.size()));
  return name.size() == kKeyNameDigits ? name : std::string();
}

// A file that ends up at `path` is whole.
Status write_key_file(const std::string& path, const std::string& key) {
  const std::string fresh = path + ".new";
  WEFT_CHECK(remove_file(fresh));
  WEFT_TRY(const Fd file, open_file(fresh, O_WRONLY | O_CREAT | O_EXCL, 0600));
  WEFT_CHECK(write_exact(file.get(), 0, std::as_bytes(std::span(key)), fresh));
  WEFT_CHECK(sync_file(file.get(), fresh));
  WEFT_CHECK(rename_file(fresh, path));
  return sync_parent(path);
}

Status accept(const std::string& file, const KeyState& now, const KeyOrder& order) {
  if (order.name == now.proving || order.name == now.next || order.name == now.previous) return {};
  const std::string& other = now.next.empty() ? now.previous : now.next;
  if (!other.empty())
    return Error{Errc::exists, fmt::format("another change of the key has begun, with the second key {}", other)};
  const bool fits = order.key.size() >= kSecretBytes && order.key.size() <= limits::kKeyFileMax;
  if (!fits || name_of(order.key) != order.name) return Error{Errc::invalid, "a key that has another name or size"};
  return write_key_file(next_of(file), order.key);
}

Status use(const std::string& file, const KeyState& now, const KeyOrder& order) {
  if (order.name == now.proving) return {};
  if (order.name != now.next)
    return Error{Errc::not_found, fmt::format("this node does not have the key {}", order.name)};
  WEFT_CHECK(remove_file(previous_of(file)));  // a second name of the same key, if any
  WEFT_CHECK(link_file(file, previous_of(file)));
  WEFT_CHECK(rename_file(next_of(file), file));
  return sync_parent(file);
}

Status forget(const std::string& file, const KeyState& now, const KeyOrder& order) {
  if (order.name == now.proving)
    return Error{Errc::invalid, fmt::format("the key {} is the one that this node proves", order.name)};
  if (order.name == now.next) WEFT_CHECK(remove_file(next_of(file)));
  if (order.name == now.previous) WEFT_CHECK(remove_file(previous_of(file)));
  if (order.name == now.next || order.name == now.previous) WEFT_CHECK(remove_file(made_of(file)));
  return sync_parent(file);
}

}  // namespace

Result<KeyState> read_key_state(const std::string& file) {
  WEFT_CHECK(read_key_ring(file));
  KeyState state;
  WEFT_TRY(state.proving, name_in(file));
  WEFT_TRY(state.next, name_in(next_of(file)));
  WEFT_TRY(state.previous, name_in(previous_of(file)));
  WEFT_TRY(state.made, made_name(file));
  if (state.next == state.proving) state.next.clear();
  if (state.previous == state.proving) state.previous.clear();
  return state;
}

Result<KeyOrder> read_key_order(const std::string& file, const std::string& name) {
  WEFT_TRY(const KeyState now, read_key_state(file));
  const std::string path = name == now.next ? next_of(file) : file;
  WEFT_TRY(const auto bytes, read_file(path, limits::kKeyFileMax));
  KeyOrder order{KeyStep::accept, name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
  WEFT_TRY(const std::string read, name_in(path));
  if (read != name) return Error{Errc::not_found, fmt::format("this node does not have the key {}", name)};
  return order;
}

KeyOrder new_key_order() {
  const std::string key = random_hex(kSecretBytes) + "\n";
  return {KeyStep::accept, name_of(key), key};
}

Status note_made_key(const std::string& file, const std::string& name) {
  return write_key_file(made_of(file), name + "\n");
}

Status change_key_files(const std::string& file, const KeyOrder& order) {
  WEFT_TRY(const KeyState now, read_key_state(file));
  switch (order.step) {
    case KeyStep::accept:
      return accept(file, now, order);
    case KeyStep::use:
      return use(file, now, order);
    case KeyStep::forget:
      return forget(file, now, order);
  }
  return Error{Errc::invalid, "an unknown step"};
}

}  // namespace weft::net
