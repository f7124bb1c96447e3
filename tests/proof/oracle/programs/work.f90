! SPDX-License-Identifier: Apache-2.0
! Formatted output, arrays, recursion, an internal procedure that is passed on (a trampoline on the stack).
program work
  implicit none
  real(8) :: a(24, 24), b(24, 24), c(24, 24)
  integer :: i, j
  character(len=64) :: text
  do j = 1, 24
    do i = 1, 24
      a(i, j) = sin(real(i * j, 8))
      b(i, j) = exp(-real(i + j, 8) / 24)
    end do
  end do
  c = matmul(a, transpose(b)) + sqrt(abs(a))
  do i = 1, 40
    write (text, '(i6, f12.5, es16.8)') i, c(1 + mod(i, 24), 3), sum(c(:, 1 + mod(i, 24)))
    read (text, '(i6)') j
  end do
  print *, fibonacci(14), trim(text), maxval(c), total(added)
contains
  recursive function fibonacci(n) result(value)
    integer, intent(in) :: n
    integer :: value
    value = n
    if (n > 1) value = fibonacci(n - 1) + fibonacci(n - 2)
  end function
  function added(n) result(value)
    integer, intent(in) :: n
    integer :: value
    value = n + j
  end function
  function total(of) result(value)
    interface
      function of(n) result(value)
        integer, intent(in) :: n
        integer :: value
      end function
    end interface
    integer :: value, n
    value = 0
    do n = 1, 50
      value = value + of(n)
    end do
  end function
end program
