--  SPDX-License-Identifier: Apache-2.0
--  Exceptions of Ada: raised deep, handled near and far, raised again.
with Ada.Text_IO;

procedure Throws is
   Deep_Error, Other_Error : exception;
   Caught : Natural := 0;

   procedure Deep (Depth, Kind : Natural) is
      Room : String (1 .. 8 + Depth) := (others => 'x');
      Index : Natural := Depth;
   begin
      if Depth = 0 then
         if Kind = 0 then
            raise Deep_Error;
         elsif Kind = 1 then
            raise Other_Error with "with words";
         end if;
         Index := 100 + Kind;
         Room (Index) := 'y';
      else
         Deep (Depth - 1, Kind);
      end if;
   exception
      when Other_Error =>
         if Depth mod 4 = 3 then
            raise Deep_Error;
         end if;
         raise;
   end Deep;
begin
   for Round in 1 .. 60 loop
      begin
         Deep (Round mod 9, Round mod 3);
      exception
         when Deep_Error | Other_Error | Constraint_Error =>
            Caught := Caught + 1;
      end;
   end loop;
   Ada.Text_IO.Put_Line (Natural'Image (Caught));
end Throws;
