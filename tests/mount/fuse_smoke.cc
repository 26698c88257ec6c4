// The FUSE server alone, over a tree in memory: what the kernel gets to see.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "fakes/memory_vfs.h"
#include "mount/served_mount.h"
#include "os/sys.h"

namespace weft::testing {
namespace {

namespace fs = std::filesystem;

std::string big_text() {
  const auto bytes = random_bytes((5U << 20U) + 4321, 7);
  return std::string(as_text(bytes));
}

std::unique_ptr<MemoryVfs> small_tree(const std::string& backing) {
  auto vfs = std::make_unique<MemoryVfs>();
  vfs->add_file("models/m/1/config.json", "{}\n");
  vfs->add_file("models/m/1/empty", "");
  vfs->add_file("models/m/1/big.bin", big_text());
  vfs->add_meeting("models/m/1/meeting", big_text());
  vfs->add_link("models/m/latest", "1");
  for (int i = 0; i < 1000; ++i) vfs->add_file("models/m/1/tensors/layer." + std::to_string(i) + ".npy", "x");
  if (!backing.empty()) vfs->add_backed_file("models/m/1/model.safetensors", backing);
  vfs->make_lasting("models/m/1");
  return vfs;
}

ServedMount mount_small(MountOptions options = {}, const std::string& backing = "") {
  return ServedMount([&backing] { return small_tree(backing); }, std::move(options));
}

int errno_of_open(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  const int failed = fd < 0 ? errno : 0;
  if (fd >= 0) ::close(fd);
  return failed;
}

// By the mount's own status.
pid_t server_of(const ServedMount& mount) {
  const std::string status = read_text(mount / "status");
  const std::string key = R"("pid":)";
  const auto at = status.find(key);
  REQUIRE(at != std::string::npos);
  return std::stoi(status.substr(at + key.size()));
}

std::uint64_t lookups_of(const ServedMount& mount) {
  const std::string status = read_text(mount / "status");
  return std::stoull(status.substr(status.find(' ') + 1));
}

int failure(int result) {
  return result == 0 ? 0 : errno;
}

}  // namespace

TEST_SUITE_BEGIN("fuse" * doctest::skip(!can_mount()));

TEST_CASE("files, links and directories read as the tree says") {
  const auto mount = mount_small();
  REQUIRE(mount.started().ok());
  CHECK(read_text(mount / "models/m/1/config.json") == "{}\n");
  CHECK(read_text(mount / "models/m/1/empty").empty());
  CHECK(read_text(mount / "models/m/latest/big.bin") == big_text());
  CHECK(fs::read_symlink(mount / "models/m/latest") == "1");
  std::size_t listed = 0;
  for (const auto& entry : fs::directory_iterator(mount / "models/m/1/tensors")) {
    CHECK(entry.is_regular_file());
    ++listed;
  }
  CHECK(listed == 1000);
  struct stat facts {};
  REQUIRE(::stat((mount / "models/m/1/config.json").c_str(), &facts) == 0);
  CHECK(facts.st_mode == (S_IFREG | 0644));
  CHECK(facts.st_size == 3);
  CHECK(facts.st_mtim.tv_nsec == 123'456'789);
  CHECK(::stat((mount / "models/m/2").c_str(), &facts) == -1);
  struct statvfs space {};
  REQUIRE(::statvfs(mount.path().c_str(), &space) == 0);
  CHECK(space.f_blocks == 1000);
}

TEST_CASE("the names . and .. have their inode numbers") {
  const auto mount = mount_small();
  REQUIRE(mount.started().ok());
  struct stat dot {};
  struct stat parent {};
  REQUIRE(::stat((mount / "models/m/1/tensors/..").c_str(), &dot) == 0);
  REQUIRE(::stat((mount / "models/m/1").c_str(), &parent) == 0);
  CHECK(dot.st_ino == parent.st_ino);
}

TEST_CASE("every write is answered with EROFS") {
  const auto mount = mount_small();
  REQUIRE(mount.started().ok());
  const std::string file = mount / "models/m/1/config.json";
  const std::string fresh = mount / "models/m/1/new";
  CHECK(errno_of_open(file, O_WRONLY) == EROFS);
  CHECK(errno_of_open(file, O_RDWR) == EROFS);
  CHECK(errno_of_open(file, O_RDONLY | O_TRUNC) == EROFS);
  CHECK(errno_of_open(fresh, O_RDWR | O_CREAT) == EROFS);
  CHECK(failure(::mkdir(fresh.c_str(), 0755)) == EROFS);
  CHECK(failure(::mknod(fresh.c_str(), S_IFREG | 0644, 0)) == EROFS);
  CHECK(failure(::symlink("x", fresh.c_str())) == EROFS);
  CHECK(failure(::link(file.c_str(), fresh.c_str())) == EROFS);
  CHECK(failure(::rename(file.c_str(), fresh.c_str())) == EROFS);
  CHECK(failure(::unlink(file.c_str())) == EROFS);
  CHECK(failure(::rmdir((mount / "models/m/1/tensors").c_str())) == EROFS);
  CHECK(failure(::chmod(file.c_str(), 0600)) == EROFS);
  CHECK(failure(::truncate(file.c_str(), 0)) == EROFS);
  CHECK(failure(::setxattr(file.c_str(), "user.a", "b", 1, 0)) == EROFS);
  CHECK(failure(::access(file.c_str(), W_OK)) == EROFS);
  CHECK(failure(::access(file.c_str(), X_OK)) == EACCES);
  CHECK(failure(::access(file.c_str(), R_OK)) == 0);
}

TEST_CASE("a backed file is read by the kernel, by many at once, and mapped") {
  const TempDir other;
  const std::string backing = other / "pack";
  write_file(backing, big_text());
  const auto mount = mount_small({}, backing);
  REQUIRE(mount.started().ok());
  const std::string status = read_text(mount / "status");
  CAPTURE(status);
  REQUIRE(status.find(R"("passthrough")") != std::string::npos);
  const std::string path = mount / "models/m/1/model.safetensors";
  std::vector<std::thread> readers;
  std::atomic<int> equal{0};
  for (int i = 0; i < 4; ++i) readers.emplace_back([&] { equal += read_text(path) == big_text() ? 1 : 0; });
  for (auto& reader : readers) reader.join();
  CHECK(equal == 4);
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string expected = big_text();
  void* map = ::mmap(nullptr, expected.size(), PROT_READ, MAP_SHARED, file.get(), 0);
  REQUIRE(map != MAP_FAILED);
  CHECK(std::string_view(static_cast<const char*>(map), expected.size()) == expected);
  ::munmap(map, expected.size());
}

TEST_CASE("without passthrough in the kernel a backed file is read through the server, and the status says why") {
  const TempDir other;
  const std::string backing = other / "pack";
  write_file(backing, big_text());
  const auto tree = [&backing] {
    auto vfs = small_tree(backing);
    vfs->add_file("models/m/1/model.safetensors", big_text());  // what the server itself gives of it
    return vfs;
  };
  const ServedMount mount(tree, {}, Kernel::without_passthrough);
  REQUIRE(mount.started().ok());
  const std::string status = read_text(mount / "status");
  CAPTURE(status);
  CHECK(status.find(R"("mode":"cached")") != std::string::npos);
  CHECK(status.find("the kernel does not offer it") != std::string::npos);
  const std::string path = mount / "models/m/1/model.safetensors";
  CHECK((read_text(path) == big_text()));
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::kill(server_of(mount), SIGKILL) == 0);  // the next one goes by the same answer
  CHECK(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
  std::vector<std::byte> bytes(big_text().size());
  CHECK(read_exact(file.get(), 0, bytes, "model.safetensors").ok());
  CHECK((as_text(bytes) == big_text()));
}

TEST_CASE("a file that changes is read again at each open") {
  const auto mount = mount_small();
  REQUIRE(mount.started().ok());
  const std::string first = read_text(mount / "status");
  CHECK(first != read_text(mount / "status"));
}

TEST_CASE("seeking finds no holes") {
  const auto mount = mount_small();
  REQUIRE(mount.started().ok());
  const Fd file(::open((mount / "models/m/1/big.bin").c_str(), O_RDONLY | O_CLOEXEC));
  const auto size = static_cast<off_t>(big_text().size());
  CHECK(::lseek(file.get(), 100, SEEK_DATA) == 100);
  CHECK(::lseek(file.get(), 100, SEEK_HOLE) == size);
  CHECK(::lseek(file.get(), size, SEEK_DATA) == -1);
}

TEST_CASE("direct reads equal cached ones") {
  const auto mount = mount_small();
  REQUIRE(mount.started().ok());
  const Fd file(::open((mount / "models/m/1/big.bin").c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  REQUIRE(file.valid());
  std::vector<std::byte> bytes(big_text().size());
  CHECK(read_exact(file.get(), 0, bytes, "big.bin").ok());
  CHECK(as_text(bytes) == big_text());
}

TEST_CASE("two reads of one file are answered at once") {
  const auto mount = mount_small();
  REQUIRE(mount.started().ok());
  const Fd file(::open((mount / "models/m/1/meeting").c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  REQUIRE(file.valid());
  constexpr std::size_t kCount = 4096;
  std::array<std::array<std::byte, kCount>, 2> got{};
  std::array<bool, 2> done{};
  std::vector<std::thread> readers;
  for (std::size_t i = 0; i < 2; ++i)
    readers.emplace_back([&, i] { done[i] = read_exact(file.get(), i * (1U << 20U), got[i], "meeting").ok(); });
  for (auto& reader : readers) reader.join();
  const std::string expected = big_text();
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(done[i]);
    CHECK(as_text(got[i]) == std::string_view(expected).substr(i * (1U << 20U), kCount));
  }
}

TEST_CASE("a listing brings the attributes along") {
  const auto mount = mount_small();
  REQUIRE(mount.started().ok());
  const std::uint64_t before = lookups_of(mount);
  std::size_t listed = 0;
  struct stat facts {};
  for (const auto& entry : fs::directory_iterator(mount / "models/m/1/tensors"))
    listed += ::lstat(entry.path().c_str(), &facts) == 0 && facts.st_size == 1 ? 1 : 0;
  CHECK(listed == 1000);
  CHECK(lookups_of(mount) - before <
        100);  // lookups of the path, and of the entries before the kernel turns to READDIRPLUS
}

TEST_CASE("extended attributes only by option") {
  const auto plain = mount_small();
  REQUIRE(plain.started().ok());
  char value[16];
  CHECK(::getxattr((plain / "models/m/1/config.json").c_str(), "user.weft.size", value, sizeof value) == -1);
  CHECK(errno == EOPNOTSUPP);
  MountOptions options;
  options.xattr = true;
  const auto mount = mount_small(options);
  REQUIRE(mount.started().ok());
  const std::string path = mount / "models/m/1/config.json";
  CHECK(::getxattr(path.c_str(), "user.weft.size", value, sizeof value) == 1);
  CHECK(value[0] == '3');
  CHECK(::listxattr(path.c_str(), value, sizeof value) == 15);
  CHECK(::getxattr(path.c_str(), "user.other", value, sizeof value) == -1);
  CHECK(errno == ENODATA);
}

TEST_CASE("umask, uid and gid show; the mount is read-only") {
  MountOptions options;
  options.umask = 0027;
  options.uid = 12;
  options.gid = 34;
  const auto mount = mount_small(options);
  REQUIRE(mount.started().ok());
  struct stat facts {};
  REQUIRE(::stat((mount / "models").c_str(), &facts) == 0);
  CHECK(facts.st_mode == (S_IFDIR | 0750));
  CHECK(facts.st_uid == 12);
  CHECK(facts.st_gid == 34);
  struct statvfs space {};
  REQUIRE(::statvfs(mount.path().c_str(), &space) == 0);
  CHECK((space.f_flag & ST_RDONLY) != 0);
}

TEST_CASE("SIGTERM unmounts, also while a file is open") {
  auto mount = mount_small();
  REQUIRE(mount.started().ok());
  const Fd file(::open((mount / "models/m/1/big.bin").c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(file.valid());
  mount.signal(SIGTERM);
  CHECK(mount.wait() == 0);
  CHECK(fs::is_empty(mount.path()));
}

TEST_CASE("a lost server is followed by another") {
  const TempDir other;
  const std::string backing = other / "pack";
  write_file(backing, big_text());
  auto mount = mount_small({}, backing);
  REQUIRE(mount.started().ok());
  for (const std::string path : {"models/m/1/big.bin", "models/m/1/model.safetensors"}) {
    const Fd file(::open((mount / path).c_str(), O_RDONLY | O_CLOEXEC));
    const pid_t before = server_of(mount);
    REQUIRE(::kill(before, SIGKILL) == 0);
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    std::vector<std::byte> bytes(big_text().size());
    CHECK(read_exact(file.get(), 0, bytes, path).ok());
    CHECK(as_text(bytes) == big_text());
    CHECK(read_text(mount / path) == big_text());
    CHECK(server_of(mount) != before);
  }
  CHECK(read_text(mount / "status").find(R"("passthrough")") != std::string::npos);
  CHECK(::umount2(mount.path().c_str(), 0) == 0);
  CHECK(mount.wait() == 0);
}

TEST_CASE("if the kernel cannot resend requests of a lost server, the mount ends") {
  ServedMount mount([] { return small_tree(""); }, {}, Kernel::without_resend);
  REQUIRE(mount.started().ok());
  const Fd file(::open((mount / "models/m/1/big.bin").c_str(), O_RDONLY | O_CLOEXEC));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until it is taken for such a kernel
  REQUIRE(::kill(server_of(mount), SIGKILL) == 0);
  CHECK(mount.wait() == 1);
  CHECK(fs::is_empty(mount.path()));
  std::array<std::byte, 1> byte{};
  CHECK_FALSE(read_exact(file.get(), 0, byte, "big.bin").ok());  // at once
}

TEST_CASE("umount ends the server") {
  auto mount = mount_small();
  REQUIRE(mount.started().ok());
  CHECK(::umount2(mount.path().c_str(), 0) == 0);
  CHECK(mount.wait() == 0);
}

TEST_SUITE_END();

}  // namespace weft::testing
