#include "os/programs.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <chrono>

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
    const ShellCommand command = must(ShellCommand::start(text, {{"WEFT_TEST_WORD", "a b"}}));
    CHECK(wait_for(command.fd(), POLLIN, std::chrono::minutes(1)));
    return must(command.wait());
  };
  CHECK(end_of("test \"$WEFT_TEST_WORD\" = 'a b'").empty());
  CHECK(end_of("exit 3") == "ended with exit code 3");
  CHECK(end_of("kill -9 $$") == "was ended by signal 9");
}

}  // namespace weft::testing
