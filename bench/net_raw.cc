// The raw read loop that weft's reads are compared with: fi_read on one connection, in one thread.
//   net_raw serve PROVIDER HOST FILE
//       serves reads of FILE until its standard input ends; prints the line WHERE
//   net_raw read PROVIDER HOST INTO BLOCK DEPTH BYTES WHERE…
//       reads BYTES in blocks of BLOCK bytes, DEPTH at a time. INTO is `memory`, `map:FILE` (a mapped new file) or
//       `write:FILE` (pwrite of each block). With the suffix `+sha256`, as in `memory+sha256`, all bytes are hashed
//       afterwards on all cores. Prints seconds, user + system seconds of this process, and the
//       microseconds of the median block
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/sha256.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "net/transport/fabric.h"
#include "net_raw_end.h"
#include "os/sys.h"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;

constexpr int kWaitMs = 100;
constexpr std::uint64_t kChunk = 1U << 20U;

Result<std::span<std::byte>> map_file(const Fd& file, std::size_t size, bool writable) {
  void* const at = ::mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) return Error{Errc::io, "mmap failed"};
  return std::span(static_cast<std::byte*>(at), size);
}

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte b : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[std::to_integer<unsigned>(b) >> 4U];
    out += kDigits[std::to_integer<unsigned>(b) & 15U];
  }
  return out;
}

std::vector<std::byte> unhex(const std::string& text) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return out;
}

Status serve(const std::string& provider, const std::string& host, const std::string& path) {
  WEFT_TRY(const auto end, bench::RawEnd::listening(provider, host));
  WEFT_TRY(const Fd file, open_file(path, O_RDONLY));
  WEFT_TRY(const auto facts, stat_fd(file.get(), path));
  WEFT_TRY(const auto bytes, map_file(file, static_cast<std::size_t>(facts.st_size), false));
  WEFT_TRY(const auto window, net::Registration::make(end->domain(), bytes, FI_REMOTE_READ));
  const bool by_address = end->domain().needs(FI_MR_VIRT_ADDR);
  std::printf("%s %llu %llu\n", hex(end->address()).c_str(),
              static_cast<unsigned long long>(by_address ? reinterpret_cast<std::uint64_t>(bytes.data()) : 0),
              static_cast<unsigned long long>(window.key()));
  std::fflush(stdout);
  std::atomic<bool> over{false};
  std::thread waiting([&] {
    while (std::getchar() != EOF) {
    }
    over = true;
  });
  Status served;
  while (!over && served.ok()) served = end->serve_a_while();
  waiting.join();
  return served;
}

// The reading end: keeps `depth` reads in flight.
class Loop {
 public:
  struct Options {
    std::string into;  // memory, map:FILE, write:FILE
    std::size_t block = 0;
    std::size_t depth = 0;
    std::uint64_t bytes = 0;
    std::uint64_t address = 0, key = 0;
  };
  Loop(bench::RawEnd& end, Options options) : end_(end), options_(std::move(options)), slots_(options_.depth) {}

  Status prepare();
  Status run();
  std::span<const std::byte> bytes() const { return memory_; }
  std::vector<double> block_us;

 private:
  struct Slot {
    fi_context2 context{};
    std::uint64_t at = 0;
    std::size_t length = 0;
    Clock::time_point posted;
  };
  bool writes() const { return options_.into.starts_with("write:"); }
  std::span<std::byte> place(const Slot& slot) {
    const auto number = static_cast<std::size_t>(&slot - slots_.data());
    return writes() ? memory_.subspan(number * options_.block, slot.length) : memory_.subspan(slot.at, slot.length);
  }
  Status post(Slot& slot);
  Status finish(Slot& slot);
  Result<Slot*> wait();

  bench::RawEnd& end_;
  Options options_;
  std::vector<Slot> slots_;
  Fd file_;
  std::vector<std::byte> own_;
  std::span<std::byte> memory_;
  net::Registration registration_;
  std::uint64_t next_ = 0;
};

Status Loop::prepare() {
  const bool maps = options_.into.starts_with("map:");
  const std::size_t size = writes() ? options_.block * options_.depth : static_cast<std::size_t>(options_.bytes);
  if (maps || writes()) {
    const std::string path = options_.into.substr(options_.into.find(':') + 1);
    WEFT_TRY(file_, open_file(path, O_RDWR | O_CREAT | O_EXCL));
    if (::ftruncate(file_.get(), static_cast<off_t>(options_.bytes)) != 0) return Error{Errc::io, path};
  }
  if (maps) {
    WEFT_TRY(memory_, map_file(file_, size, true));
  } else {
    own_.resize(size);
    memory_ = own_;
  }
  WEFT_TRY(registration_, net::Registration::make(end_.domain(), memory_, FI_READ));
  return {};
}

Status Loop::post(Slot& slot) {
  slot.at = next_;
  slot.length = static_cast<std::size_t>(std::min<std::uint64_t>(options_.block, options_.bytes - next_));
  slot.posted = Clock::now();
  next_ += slot.length;
  for (;;) {
    const ssize_t failed = fi_read(end_.endpoint(), place(slot).data(), slot.length, registration_.descriptor(),
                                   FI_ADDR_UNSPEC, options_.address + slot.at, options_.key, &slot.context);
    if (failed == 0) return {};
    if (failed != -FI_EAGAIN) return net::fabric_error(failed, "fi_read");
    fi_cq_read(end_.domain().queue.get(), nullptr, 0);
  }
}

Result<Loop::Slot*> Loop::wait() {
  fi_cq_data_entry entry{};
  for (;;) {
    const ssize_t count = fi_cq_sread(end_.domain().queue.get(), &entry, 1, nullptr, kWaitMs);
    if (count == 1) break;
    if (count != -FI_EAGAIN && count != -FI_ETIMEDOUT) return net::fabric_error(count, "fi_cq_sread");
  }
  const auto found =
      std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) { return &slot.context == entry.op_context; });
  if (found == slots_.end()) return Error{Errc::internal, "a completion of nothing"};
  return &*found;
}

Status Loop::finish(Slot& slot) {
  block_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - slot.posted).count());
  if (!writes()) return {};
  return write_exact(file_.get(), slot.at, place(slot), options_.into);
}

Status Loop::run() {
  std::size_t in_flight = 0;
  for (Slot& slot : slots_) {
    if (next_ >= options_.bytes) break;
    WEFT_CHECK(post(slot));
    ++in_flight;
  }
  while (in_flight > 0) {
    WEFT_TRY(Slot* const slot, wait());
    WEFT_CHECK(finish(*slot));
    --in_flight;
    if (next_ >= options_.bytes) continue;
    WEFT_CHECK(post(*slot));
    ++in_flight;
  }
  return {};
}

void hash(std::span<const std::byte> bytes) {
  ThreadPool pool(0);
  std::vector<Digest> digests(chunk_count(bytes.size()));
  const std::size_t together = sha256_each_best() * kChunk;
  pool.parallel_for((bytes.size() + together - 1) / together, [&](std::size_t i) {
    const auto part = bytes.subspan(i * together, std::min(together, bytes.size() - i * together));
    sha256_chunks(part, std::span(digests).subspan(i * together / kChunk, chunk_count(part.size())));
  });
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Status read(const std::vector<std::string>& words) {
  constexpr std::string_view kHash = "+sha256";
  Loop::Options options;
  options.into = words[3];
  const bool hashes = options.into.ends_with(kHash);
  if (hashes) options.into.resize(options.into.size() - kHash.size());
  options.block = std::stoull(words[4]);
  options.depth = std::stoull(words[5]);
  options.bytes = std::stoull(words[6]);
  const std::vector<std::byte> address = unhex(words[7]);
  options.address = std::stoull(words[8]);
  options.key = std::stoull(words[9]);
  WEFT_TRY(const auto end, bench::RawEnd::connected(words[1], words[2], address));
  Loop::Options first = options;
  first.into = "memory";
  first.bytes = first.block = 1;
  first.depth = 1;
  Loop before(*end, first);  // a warm-up: the first read on a connection is not measured
  WEFT_CHECK(before.prepare());
  WEFT_CHECK(before.run());
  Loop loop(*end, options);
  WEFT_CHECK(loop.prepare());
  const double cpu = cpu_seconds();
  const auto begin = Clock::now();
  WEFT_CHECK(loop.run());
  if (hashes) hash(loop.bytes());
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  auto& blocks = loop.block_us;
  std::nth_element(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(blocks.size() / 2), blocks.end());
  std::printf("%.6f %.6f %.1f\n", took, cpu_seconds() - cpu, blocks[blocks.size() / 2]);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  Status status = Error{Errc::invalid,
                        "usage: net_raw serve PROVIDER HOST FILE | read PROVIDER HOST INTO BLOCK DEPTH "
                        "BYTES WHERE…"};
  if (words.size() == 4 && words[0] == "serve") status = serve(words[1], words[2], words[3]);
  if (words.size() == 10 && words[0] == "read") status = read(words);
  if (!status.ok()) std::fprintf(stderr, "net_raw: %s\n", status.error().message.c_str());
  return status.ok() ? 0 : 1;
}
