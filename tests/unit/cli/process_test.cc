// Tests that need a process: signals, closed pipes, exit codes as a shell sees them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/argv.h"
#include "os/sys.h"
#include "testing.h"

using weft::testing::read_text;
using weft::testing::TempDir;

namespace fs = std::filesystem;

namespace {

// The weft program, with its stderr in a file.
class Process {
 public:
  Process(std::vector<std::string> words, const std::string& err) {
    words.insert(words.begin(), WEFT_PROGRAM);
    std::vector<char*> argv = weft::argv_of(words);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    int error = ::posix_spawn(&pid_, WEFT_PROGRAM, &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    REQUIRE(error == 0);
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  int wait() {  // returns the exit code, or 128 + the signal that ended it
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    pid_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = 0;
};

// A store, and a slow import that has begun to read.
struct LongImport {
  LongImport() {
    weft::Fd fd = std::move(weft::open_file(dir / "large", O_RDWR | O_CREAT)).value();
    for (off_t chunk = 0; chunk < 8192; ++chunk)  // mostly holes, but no MiB is all zeros
      REQUIRE(::pwrite(fd.get(), "x", 1, chunk << 20) == 1);
    REQUIRE(Process({"init", "--store", dir / "store"}, dir / "err").wait() == 0);
    import = std::make_unique<Process>(
        std::vector<std::string>{"import", dir / "large", "--name", "m", "--store", dir / "store"}, dir / "err");
    while (fs::is_empty(dir / "store/tmp")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  int list() { return Process({"ls", "m", "--store", dir / "store"}, dir / "ls.err").wait(); }

  TempDir dir;
  std::unique_ptr<Process> import;
};

}  // namespace

TEST_CASE("a signal stops an import, which takes away what it made") {
  for (int signal : {SIGINT, SIGTERM}) {
    LongImport w;
    w.import->send(signal);
    CHECK(w.import->wait() == 128 + signal);
    CHECK(read_text(w.dir / "err") == "weft: interrupted, the store is as it was\n");
    CHECK(fs::is_empty(w.dir / "store/tmp"));
    CHECK(fs::is_empty(w.dir / "store/packs"));
    CHECK(w.list() == 1);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a fault in the mapped index is explained") {
  for (int signal : {SIGSEGV, SIGBUS}) {
    LongImport w;
    w.import->send(signal);
    CHECK(w.import->wait() == 1);
    CHECK(read_text(w.dir / "err") == "weft: the index looks damaged; run `weft fsck --rebuild`\n");
  }
}
#endif

TEST_CASE("a closed pipe ends a command quietly") {
  TempDir dir;
  std::string script = std::string("set -o pipefail; trap '' PIPE; (sleep 0.2; exec " WEFT_PROGRAM " --help) 2>") +
                       (dir / "err") + " | true";
  int status = ::system(("bash -c \"" + script + "\"").c_str());
  CHECK(WEXITSTATUS(status) == 128 + SIGPIPE);
  CHECK(read_text(dir / "err").empty());
}
