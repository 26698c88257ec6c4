#include "os/mounts.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>

#include "base/json.h"
#include "base/text.h"
#include "os/open_beneath.h"
#include "os/read_within.h"
#include "os/sys.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

constexpr std::size_t kStatusMax = 1U << 20U;
constexpr timeval kUpgradeMax{90, 0};  // longer than the supervisor waits for the new program
constexpr std::string_view kUpgraded = ".";
constexpr char kMountInfo[] = "/proc/self/mountinfo";
constexpr std::uint64_t kMountInfoMax = 64U << 20U;
constexpr std::uint64_t kFdInfoMax = 64U << 10U;
constexpr std::chrono::seconds kStorePatience{10};  // a disk that has to start turning takes less
constexpr std::string_view kDescriptors = "/dev/fd/";
constexpr std::string_view kConnection = "fuse_connection:";
constexpr unsigned kMinorBits = 20;  // of a device number inside the kernel

// Decodes the \ooo escapes by which mountinfo writes blanks and backslashes.
std::string unescaped(std::string_view text) {
  auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) && octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

Result<std::string> real_path(const std::string& path) {
  std::error_code error;
  auto real = std::filesystem::canonical(path, error);
  if (error) return sys_error(error.value(), path);
  return real.string();
}

Result<Fd> connect_to(const std::string& control) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (control.empty() || control.size() >= sizeof address.sun_path)
    return Error{Errc::unsupported, "this mount's supervisor takes no upgrades"};
  std::copy(control.begin(), control.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + control.size());
  if (!socket.valid() || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return sys_error(errno, "asking the mount's supervisor");
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kUpgradeMax, sizeof kUpgradeMax);
  return socket;
}

// Collects the members of one object of a mount's status. parse_json() checks meanwhile that the status is JSON.
class MemberReader final : public JsonHandler {
 public:
  explicit MemberReader(std::string_view wanted) : wanted_(wanted) {}
  Status begin_object() override { return nest(1); }
  Status end_object() override { return nest(-1); }
  Status begin_array() override { return nest(1); }
  Status end_array() override { return nest(-1); }
  Status key(std::string_view name) override {
    (depth_ == 1 ? object_ : key_) = std::string(name);
    return {};
  }
  Status text(std::string_view value) override { return add(printable(value)); }
  Status number(std::uint64_t value) override { return add(std::to_string(value)); }
  Status negative(std::int64_t value) override { return add(std::to_string(value)); }
  Status real(double value) override { return add(fmt::format("{}", value)); }
  Status boolean(bool value) override { return add(value ? "yes" : "no"); }
  Status null() override { return {}; }

  MountMembers found;

 private:
  Status nest(int by) {
    depth_ += by;
    return {};
  }
  Status add(const std::string& value) {
    if (depth_ == 2 && object_ == wanted_) found.emplace_back(key_, value);
    return {};
  }
  const std::string_view wanted_;
  int depth_ = 0;
  std::string object_;
  std::string key_;
};

std::uint64_t number_of(std::string_view text) {
  return parse_u64(text).value_or(0);
}

struct MountLine {
  WeftMount mount;
  std::string_view root;  // the directory of the file system that is mounted
  std::string_view type;
};

std::vector<MountLine> mount_lines(std::string_view text) {
  std::vector<MountLine> lines;
  for (std::string_view line : split(text, '\n')) {
    // id parent device root DIRECTORY options [optional…] - TYPE SOURCE options
    auto dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    auto before = split(line.substr(0, dash), ' ');
    auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 6 || after.size() < 2) continue;
    lines.push_back({{unescaped(before[4]), unescaped(after[1]), std::string(before[2]), number_of(before[0])},
                     before[3],
                     after[0]});
  }
  return lines;
}

}  // namespace

std::vector<WeftMount> parse_mountinfo(std::string_view text) {
  std::vector<WeftMount> mounts;
  for (MountLine& line : mount_lines(text))
    if (line.type == "fuse.weft") mounts.push_back(std::move(line.mount));
  return mounts;
}

Result<std::vector<WeftMount>> weft_mounts() {
  WEFT_TRY(const std::string text, read_kernel_file(kMountInfo, kMountInfoMax));
  return parse_mountinfo(text);
}

std::string parse_directory(std::string_view mountinfo, std::string_view device) {
  for (const MountLine& line : mount_lines(mountinfo))
    if (line.mount.device == device && line.root == "/") return line.mount.directory;
  return "";
}

std::string directory_of_device(std::string_view device) {
  const auto text = read_kernel_file(kMountInfo, kMountInfoMax);
  return text.ok() ? parse_directory(*text, device) : "";
}

Result<std::vector<WeftMount>> mounts_of(const std::string& store) {
  WEFT_TRY(auto mounts, weft_mounts());
  WEFT_TRY(const struct stat own, stat_file(store));
  std::erase_if(mounts, [&own](const WeftMount& mount) {
    const auto other = stat_file(mount.store);
    return !other.ok() || other->st_dev != own.st_dev || other->st_ino != own.st_ino;
  });
  return mounts;
}

std::optional<WeftMount> top_mount(const std::vector<WeftMount>& mounts, std::string_view directory) {
  std::optional<WeftMount> top;
  for (const WeftMount& mount : mounts)
    if (mount.directory == directory) top = mount;
  return top;
}

Result<Fd> open_cached(const std::string& path, std::string_view device) {
  WEFT_TRY(Fd fd, open_beneath(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, Resolve::in_cache));
  struct statx facts {};
  if (::statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &facts) != 0) return sys_error(errno, path);
  if (fmt::format("{}:{}", facts.stx_dev_major, facts.stx_dev_minor) != device) return other_file_system(path);
  return fd;
}

bool names_descriptor(std::string_view mount_point) {
  return mount_point.starts_with(kDescriptors);
}

Status check_store_answers(const std::string& store, std::string_view mount_point) {
  const auto opened = read_file_within(store, 0, kStorePatience);
  if (opened.ok() || opened.error().code != Errc::busy) return {};
  return Error{Errc::invalid,
               fmt::format("mount point {}: the store {} does not answer within {} s: expected a store that "
                           "does not lie below this mount, which nobody serves yet",
                           mount_point, store, kStorePatience.count())};
}

std::string parse_fdinfo(std::string_view text) {
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(kConnection)) continue;
    const auto blanks = line.find_first_not_of(" \t", kConnection.size());
    const auto number = parse_u64(blanks == std::string_view::npos ? "" : line.substr(blanks));
    if (number) return fmt::format("{}:{}", *number >> kMinorBits, *number & ((1U << kMinorBits) - 1));
  }
  return "";
}

std::string served_device(int fd) {
  const auto text = read_kernel_file(fmt::format("/proc/self/fdinfo/{}", fd), kFdInfoMax);
  return text.ok() ? parse_fdinfo(*text) : "";
}

Result<std::string> mount_point_path(const std::string& directory) {
  std::string path = directory;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const auto slash = path.rfind('/');
  const std::string last = path.substr(slash == std::string::npos ? 0 : slash + 1);
  if (last.empty() || last == "." || last == "..") return real_path(path);
  auto below = real_path(slash == std::string::npos ? "." : path.substr(0, slash + 1));
  if (!below.ok()) return below;
  if (!below->ends_with('/')) below->push_back('/');
  below->append(last);
  const auto mounts = weft_mounts();
  if (mounts.ok() && top_mount(*mounts, *below)) return below;
  return real_path(path);
}

Result<std::string> read_mount_status(const std::string& directory, std::chrono::milliseconds time) {
  return read_file_within(directory + "/.weft/status", kStatusMax, time);
}

Status unmount_directory(const std::string& directory, bool lazy, std::string_view where) {
  if (::umount2(directory.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return {};
  return sys_error(errno, where);
}

Result<MountMembers> status_members(std::string_view status_json, std::string_view object) {
  MemberReader members(object);
  WEFT_CHECK(parse_json(status_json, 16, members));
  return std::move(members.found);
}

Result<MountProcesses> mount_processes(std::string_view status_json) {
  WEFT_TRY(const MountMembers members, status_members(status_json, "mount"));
  MountProcesses out;
  for (const auto& [key, value] : members) {
    if (key == "control") out.control = value;
    if (key == "pid") out.server_pid = number_of(value);
    if (key == "supervisor_pid") out.supervisor_pid = number_of(value);
    if (key == "pid_namespace") out.pid_namespace = number_of(value);
  }
  return out;
}

Status upgrade_mount(const std::string& control, const std::string& program) {
  WEFT_TRY(const Fd socket, connect_to(control));
  if (::send(socket.get(), program.data(), program.size(), MSG_NOSIGNAL) < 0)
    return sys_error(errno, "asking the mount's supervisor");
  std::array<char, 4096> answer{};
  const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), 0);
  if (got < 0) return sys_error(errno, "the answer of the mount's supervisor");
  if (got == 0) return Error{Errc::internal, "the mount's supervisor ended without an answer"};
  const std::string text(answer.data(), static_cast<std::size_t>(got));
  if (text == kUpgraded) return {};
  return Error{Errc::invalid, text};
}

std::vector<Fd> watch_processes(const MountProcesses& processes) {
  std::vector<Fd> out;
  if (processes.pid_namespace != pid_namespace()) return out;
  for (const std::uint64_t pid : {processes.server_pid, processes.supervisor_pid}) {
    Fd process(pid == 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
    if (process.valid()) out.push_back(std::move(process));
  }
  return out;
}

bool wait_for_ends(std::span<const Fd> processes, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (const Fd& process : processes) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (!wait_for(process.get(), POLLIN, std::max(left, std::chrono::milliseconds(0)))) return false;
  }
  return true;
}

std::uint64_t pid_namespace() {
  const auto facts = stat_file("/proc/self/ns/pid");
  return facts.ok() ? facts->st_ino : 0;
}

}  // namespace weft
