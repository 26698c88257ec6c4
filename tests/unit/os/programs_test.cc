#include "os/programs.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include "os/memory_file.h"
#include "os/unix_socket.h"
#include "testing.h"

namespace weft::testing {

TEST_CASE("programs are run with their arguments, and their exit codes come back") {
  CHECK(*run_program("/bin/sh", {"sh", "-c", "exit $#", "sh", "a b", "c"}) == 2);
  CHECK(*run_program("/bin/sh", {"sh", "-c", "kill -9 $$"}) == 128 + 9);
  CHECK(*run_program("/bin/sh", {"called so", "-c", "test \"$0\" = 'called so'"}) == 0);
  CHECK(run_program("/nonexistent/program", {"program"}).error().code == Errc::not_found);
  CHECK(become_program("/nonexistent/program", {"program"}).code == Errc::not_found);
  std::string errors;
  CHECK(*run_program("/bin/sh", {"sh", "-c", "echo why >&2; exit 1"}, errors) == 1);
  CHECK(errors == "why\n");
}

TEST_CASE("a shell command gets its variables, and its end is visible and has a reason") {
  const auto end_of = [](const std::string& text) {
    const SideProgram command = must(SideProgram::start_shell(text, {{"WEFT_TEST_WORD", "a b"}}));
    CHECK(wait_for(command.fd(), POLLIN, std::chrono::minutes(1)));
    return must(command.wait());
  };
  CHECK(end_of("test \"$WEFT_TEST_WORD\" = 'a b'").empty());
  CHECK(end_of("exit 3") == "ended with exit code 3");
  CHECK(end_of("kill -9 $$") == "was ended by signal 9");
}

TEST_CASE("a program beside this process is silent, has its variables and one value of each, and ends by a signal") {
  REQUIRE(::setenv("WEFT_TEST_WORD", "old", 1) == 0);
  const Fd errors = must(memory_file("errors"));
  const auto start = [&](const std::string& script) {
    return must(SideProgram::start("/bin/sh", {"sh", "-c", script}, {{"WEFT_TEST_WORD", "new"}}, errors.get()));
  };
  const SideProgram told = start("echo lost; env | grep WEFT_TEST_WORD >&2; ls -l /proc/$$/fd/0 | grep -q /dev/null");
  CHECK(must(told.wait()).empty());
  CHECK(message_in(errors) == "WEFT_TEST_WORD=new\n");
  const SideProgram endless = start("sleep 1000");
  CHECK_FALSE(wait_for(endless.fd(), POLLIN, std::chrono::milliseconds(0)));
  endless.send(SIGTERM);
  CHECK(must(endless.wait()) == "was ended by signal 15");
  CHECK(must(SideProgram::start("/nonexistent/program", {"program"}, {}, errors.get()).value().wait()) ==
        "ended with exit code 127");
  ::unsetenv("WEFT_TEST_WORD");
}

TEST_CASE("a program beside this process ends with the thread that started it") {
  const Fd errors = must(memory_file("errors"));
  std::optional<SideProgram> program;
  std::thread([&] {
    program = must(SideProgram::start("/bin/sh", {"sh", "-c", "echo runs >&2; exec sleep 1000"}, {}, errors.get()));
    while (message_in(errors).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }).join();
  CHECK(must(program->wait()) == "was ended by signal 15");
}

TEST_CASE("a command in the foreground gives its exit code, and gets the signals of other processes") {
  const auto code_of = [](const std::string& script) {
    const auto command = must(FrontCommand::start({"sh", "-c", script}));
    for (;;)
      if (const auto code = must(command->wait(std::chrono::minutes(1)))) return *code;
  };
  CHECK(code_of("exit 3") == 3);
  CHECK(code_of("kill -9 $$") == 128 + 9);
  for (const char* signal : {"TERM", "USR1"}) {
    const std::string name(signal);
    CHECK(code_of("trap 'exit 5' " + name + "; kill -" + name + " $PPID; while :; do sleep 0.01; done") == 5);
  }
  {
    const auto command = must(FrontCommand::start({"sleep", "1"}));
    CHECK_FALSE(must(command->wait(std::chrono::milliseconds(0))).has_value());
    CHECK(must(command->wait(std::chrono::minutes(1))) == 0);
  }
  CHECK(FrontCommand::start({"weft-no-such-command"}).error().code == Errc::not_found);
  CHECK(FrontCommand::start({"/etc/passwd"}).error().code != Errc::not_found);
  sigset_t now;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &now) == 0);
  CHECK(::sigismember(&now, SIGTERM) == 0);
}

}  // namespace weft::testing
